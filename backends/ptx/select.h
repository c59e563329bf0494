// Instruction selection: each op of linear code becomes a few PTX instructions over virtual
// registers.
//
//   select.cc                 registers, loops and conditions, indices
//   select_memory.cc          loads and stores, as wide as their alignment is known to allow
//   select_arithmetic.cc      arithmetic, comparisons, casts
//   select_transcendental.cc  exp2, log2, sin, and what else takes more than an instruction
//   select_threads.cc         folds over threads
//
// A linear register of n lanes is n virtual registers. By dtype:
//   bool           predicates; a byte in memory
//   u8, i32, u32   .b32; the upper bits of a u8 are zero
//   i64, u64       .b64
// Arithmetic says .rn throughout, so that ptxas fuses no product with a sum.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "backends/ptx/instruction.h"
#include "layers/l0/linearize.h"

namespace l3c::ptx {

struct SelectOptions {
  bool approximate = false;
};

// Expects linear code for threads.
absl::StatusOr<Function> Select(const l0::LinearKernel& kernel, const SelectOptions& options);

class Selector {
 public:
  Selector(const l0::LinearKernel& kernel, const SelectOptions& options)
      : kernel_(kernel), options_(options) {}

  absl::StatusOr<Function> Run();

 private:
  using DType = tensor::DType;
  using LinearOp = l0::LinearOp;
  using Lanes = std::vector<Operand>;  // registers and constants

  // ---- Instructions --------------------------------------------------------------------------

  static RegClass ClassOf(DType dtype);
  VReg New(RegClass reg_class);
  void Append(Instruction instruction) { function_.body.push_back(std::move(instruction)); }
  void Append(std::string opcode, std::vector<Operand> dst, std::vector<Operand> src);
  // One instruction with a new register as its result.
  Operand Make(RegClass reg_class, std::string opcode, std::vector<Operand> src);
  Operand Pred(std::string opcode, std::vector<Operand> src) {
    return Make(RegClass::kPred, std::move(opcode), std::move(src));
  }
  Operand B32(std::string opcode, std::vector<Operand> src) {
    return Make(RegClass::kB32, std::move(opcode), std::move(src));
  }
  Operand B64(std::string opcode, std::vector<Operand> src) {
    return Make(RegClass::kB64, std::move(opcode), std::move(src));
  }
  Operand F32(std::string opcode, std::vector<Operand> src) {
    return Make(RegClass::kF32, std::move(opcode), std::move(src));
  }
  Operand F64(std::string opcode, std::vector<Operand> src) {
    return Make(RegClass::kF64, std::move(opcode), std::move(src));
  }
  Operand Register(const Operand& operand, DType dtype);  // a constant in a register
  Operand Special(const char* name) { return B32("mov.u32", {Operand::Name(name)}); }
  void Move(DType dtype, const Operand& to, const Operand& from);
  uint32_t NewLabel() { return labels_++; }
  void PlaceLabel(uint32_t label) { Append("", {}, {Operand::Label(label)}); }
  void Branch(uint32_t label, const Operand& predicate, bool unless);

  // ---- Linear registers ----------------------------------------------------------------------

  DType DTypeOf(l0::Reg reg) const { return kernel_.registers[reg].dtype; }
  size_t LanesOf(l0::Reg reg) const { return kernel_.registers[reg].lanes; }
  const Lanes& Get(l0::Reg reg) const { return values_[reg]; }
  // Lane l; of a scalar the same for all.
  const Operand& Lane(l0::Reg reg, size_t l) const {
    return values_[reg][values_[reg].size() == 1 ? 0 : l];
  }
  void Set(l0::Reg reg, Lanes lanes);
  void Fail(std::string message);

  // ---- Control -------------------------------------------------------------------------------

  void Begin();
  void EmitOp(const LinearOp& op);
  void OpenRange(const LinearOp& op);
  void CloseRange();
  void OpenIf(const LinearOp& op);
  void CloseIf();
  void EmitIndex(const LinearOp& op);
  // Where the value is known to lie in [0, 2^31): 32 bits of it.
  std::optional<Operand> Narrow(l0::Reg reg) const;
  void SetNarrow(l0::Reg reg, const Operand& low);

  // ---- Memory --------------------------------------------------------------------------------

  int64_t MultipleOf(const LinearOp& op) const;
  // The largest power of two that divides the index of the first lane.
  int64_t AlignmentOf(const LinearOp& op) const;
  // Of lane `lane` of an access.
  Operand AddressOf(const LinearOp& op, size_t lane, size_t size);
  Operand Scaled(uint32_t param, const Operand& index, size_t size);
  // Lanes that one access takes from `lane` on, before `end`.
  size_t Width(const LinearOp& op, size_t lane, size_t end, size_t size) const;
  void EmitLoad(const LinearOp& op);
  void EmitStore(const LinearOp& op);

  // ---- Arithmetic ----------------------------------------------------------------------------

  Operand Constant(DType dtype, double number, int64_t integer);
  Operand Sum(DType dtype, const Operand& x, const Operand& y);
  Operand Product(DType dtype, const Operand& x, const Operand& y);
  Operand Maximum(DType dtype, const Operand& x, const Operand& y);
  Operand Minus(DType dtype, const Operand& x);
  Operand Modulo(DType dtype, const Operand& x, const Operand& y);
  Operand FloatModulo(const Operand& x, const Operand& y);
  Operand Reciprocal(DType dtype, const Operand& x);
  Operand SquareRoot(DType dtype, const Operand& x);
  Operand Less(DType dtype, const Operand& x, const Operand& y);
  Operand Differs(DType dtype, const Operand& x, const Operand& y);
  Operand Where(DType dtype, const Operand& condition, const Operand& x, const Operand& y);
  Operand Cast(DType from, DType to, const Operand& x);
  Operand CastInteger(DType from, DType to, const Operand& x);
  Operand Bitcast(DType from, DType to, const Operand& x);
  Operand Byte(const Operand& x) { return B32("and.b32", {x, Operand::Integer(255)}); }
  Operand Fold(l0::Fold fold, DType dtype, const Operand& x, const Operand& y);
  void MulAcc(const LinearOp& op);
  void FoldLanes(const LinearOp& op);

  // ---- Transcendentals -----------------------------------------------------------------------

  Operand Polynomial(const Operand& x, const std::vector<double>& coefficients, bool wide);
  Operand Exp2(const Operand& x);
  Operand PowerOfTwo(const Operand& n);
  Operand Log2(const Operand& x);
  Operand Sin(const Operand& x);
  Operand LargeSin(const Operand& x);
  // (-1)^n sin(r) of f64 r, in f32; `parity` has n in its lowest bit.
  Operand SinOfRest(const Operand& r, const Operand& parity);
  Operand Philox(const Operand& key, const Operand& index);
  Operand Bf16Pair(const Operand& low, const Operand& high);
  Operand Bf16Dot(const Operand& sum, const Operand& a, const Operand& b);

  // ---- Threads -------------------------------------------------------------------------------

  void FoldThreads(const LinearOp& op);
  // The value that the thread `distance` lanes away has.
  Operand FromLane(DType dtype, const Operand& x, int64_t distance, const Operand& members);
  Operand FoldWarps(l0::Fold fold, DType dtype, const Operand& x);

  struct Bracket {  // an open range or if
    Operand counter;
    Operand limit;
    uint32_t head = 0;
    uint32_t after = 0;
    int64_t step = 0;
  };

  const l0::LinearKernel& kernel_;
  const SelectOptions options_;
  Function function_;
  std::vector<Lanes> values_;          // by linear register
  std::vector<int64_t> multiple_;      // that divides a scalar i64; 0: it is zero
  std::map<l0::Reg, Operand> narrow_;  // 32 bits of those that need no more
  std::vector<Bracket> brackets_;
  std::vector<Operand> params_;  // pointers
  // By parameter and index register: addresses that were computed in the brackets that are open.
  std::vector<std::map<std::pair<uint32_t, VReg>, VReg>> addresses_;
  uint32_t labels_ = 0;
  bool shares_ = false;  // there was a fold through shared memory
  absl::Status status_;
};

}  // namespace l3c::ptx
