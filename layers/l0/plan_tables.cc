#include "layers/l0/plan_tables.h"

#include "layers/support/binary.h"

namespace l3c::l0 {

// One function a type for both directions; a field of the text form that is missing here fails
// tests/layers/l0/plan/tables_test.cc.
template <class Archive>
void Fields(Archive& archive, Pool& x) {
  archive(x.name, x.kind, x.node, x.capacity, x.size);
}
template <class Archive>
void Fields(Archive& archive, Buffer& x) {
  archive(x.name, x.dtype, x.shape, x.pool, x.offset, x.size, x.first_use, x.last_use);
}
template <class Archive>
void Fields(Archive& archive, Param& x) {
  archive(x.name, x.access, x.dtype, x.shape);
}
template <class Archive>
void Fields(Archive& archive, Axis& x) {
  archive(x.name, x.extent, x.kind, x.block, x.tile, x.vector);
}
template <class Archive>
void Fields(Archive& archive, Kernel& x) {
  archive(x.name, x.params, x.axes);
}
template <class Archive>
void Fields(Archive& archive, FieldSource& x) {
  archive(x.field, x.dtype, x.shape, x.classes, x.ignored);
}
template <class Archive>
void Fields(Archive& archive, DataSource& x) {
  archive(x.name, x.path, x.fields);
}
template <class Archive>
void Fields(Archive& archive, Sampler& x) {
  archive(x.name, x.source, x.split, x.kind, x.batch, x.samples, x.drop_last, x.window, x.stride,
          x.shards, x.buffer, x.recent, x.seed);
}
template <class Archive>
void Fields(Archive& archive, Token& x) {
  archive(x.name, x.initial);
}
template <class Archive>
void Fields(Archive& archive, Stream& x) {
  archive(x.name, x.kind, x.node);
}
template <class Archive>
void Fields(Archive& archive, InitOp& x) {
  archive(x.buffer, x.kind, x.a, x.b, x.seed, x.key);
}
template <class Archive>
void Fields(Archive& archive, Command& x) {
  archive(x.kind, x.kernel, x.args, x.sampler, x.fields, x.mask, x.token, x.values, x.split);
}
template <class Archive>
void Fields(Archive& archive, Sequence& x) {
  archive(x.name, x.stream, x.commands);
}
template <class Archive>
void Fields(Archive& archive, Metric& x) {
  archive(x.name, x.split, x.numerator, x.denominator);
}
template <class Archive>
void Fields(Archive& archive, Phase& x) {
  archive(x.name, x.epochs, x.steps, x.batch);
}
template <class Archive>
void Fields(Archive& archive, Operand& x) {
  archive(x.immediate, x.value, x.sequence);
}
template <class Archive>
void Fields(Archive& archive, Region& x) {
  archive(x.name, x.access, x.size, x.values, x.names, x.stream);
}
template <class Archive>
void Fields(Archive& archive, ControlInstruction& x) {
  archive(x.op, x.result, x.width, x.arith, x.cmp, x.region, x.a, x.b, x.target, x.otherwise);
}
template <class Archive>
void Fields(Archive& archive, ControlBlock& x) {
  archive(x.name, x.instructions);
}
template <class Archive>
void Fields(Archive& archive, ControlUnit& x) {
  archive(x.name, x.regions, x.blocks, x.registers);
}
template <class Archive>
void Fields(Archive& archive, Plan& x) {
  archive(x.name, x.pools, x.buffers, x.kernels, x.sources, x.samplers, x.tokens, x.streams, x.init,
          x.sequences, x.metrics, x.phases, x.control, x.parameters, x.optimiser_state);
}

std::string WritePlanTables(const Plan& plan) {
  support::BinaryWriter writer;
  writer(plan);
  return writer.Take();
}

std::optional<Plan> ReadPlanTables(std::string_view bytes) {
  support::BinaryReader reader(bytes);
  Plan plan;
  reader(plan);
  if (!reader.ok() || !reader.at_end()) return std::nullopt;
  return plan;
}

}  // namespace l3c::l0
