// What a model reads: its `in` as one value, and the models that a value depends on.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "layers/l3/ir.h"
#include "layers/tensor/dtype.h"

namespace l3c::l2 {

// One sample of what the network reads. One field or output goes in as it is, but that a
// sequence of numbers has an axis of one channel, [length, 1]. Several are joined:
// sequences of one length element by element, [length, sum of their elements]; everything else
// flattened, [sum of the elements].
tensor::Shape InputShape(const l3::Module& spec, const l3::Model& model);

// The classes of a distribution, or of each element of a sequence of distributions; else 0.
int64_t ClassesOf(const l3::Domain& domain);

// Adds the names of the models that `ref` is computed by: of an output its model and, through `in`
// or the arguments, those before it; of parameters and activations their model (and for activations
// those before it); of a loss or a term those of everything that it reads; of a field none.
void AddModels(const l3::Module& spec, const l3::Ref& ref, std::set<std::string>& models);
// Adds "data.field" of every field that `ref` is computed from.
void AddFields(const l3::Module& spec, const l3::Ref& ref, std::vector<l3::Ref>& fields);

// Classes that the integers of a field index, or that its reals are distributions over: those that
// its domain declares, or that a term compares it by; 0: neither.
int64_t ClassesOfField(const l3::Module& spec, const l3::Data& data, const l3::Field& field);

}  // namespace l3c::l2
