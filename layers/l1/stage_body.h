// The body of a stage that a lowering writes: allocations, then what fills the buffers, then what
// frees them, then what hands them over.
#pragma once

#include <string>
#include <vector>

#include "layers/l1/ir.h"

namespace l3c::l1 {

class StageBody {
 public:
  void Alloc(const std::string& buffer, uint32_t region, const TensorType& type);
  void Read(const std::string& buffer, const std::string& data, const std::string& field);
  // `from`: a buffer, or a field of a window that the stage reads.
  void Copy(const std::string& to, const std::string& from);
  void Drop(const std::string& buffer);
  // "graph", "actor.message". The buffers are added to the last one.
  void Forward(const std::string& target);
  void AddToForward(const std::string& buffer) { forwards_.back().buffers.push_back(buffer); }
  bool Forwards() const { return !forwards_.empty(); }

  // A copy of `from` in a region: its name, `from` with a suffix.
  std::string CopyTo(const std::string& from, const std::string& suffix, uint32_t region,
                     const TensorType& type);
  // The same of a buffer, which is freed.
  std::string Carry(const std::string& buffer, uint32_t region, const TensorType& type);

  void AppendTo(Stage& stage) const;

 private:
  static Statement Of(StatementKind kind, const std::string& buffer);

  std::vector<Statement> allocs_, fills_, drops_, forwards_;
};

}  // namespace l3c::l1
