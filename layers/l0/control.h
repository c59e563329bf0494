// Control IR: orchestration in exactly ten operations over named, sized, access-controlled regions.
// SSA registers of 64 bits; blocks end in branch, jump or terminate; no call: work is a descriptor
// pushed to a queue that an engine (a stream of the plan) pops.
//
//   control train {
//       region limits : ro 16 { steps: 4690, eval_batches: 79 }
//       region cursor : rw 16 { step: 0, epoch: 0 }
//       region signals : ro 8                       // [0] set by the host: stop requested
//       queue loader_q : 2 -> loader                // capacity in descriptors
//       queue compute_0_q : 2 -> compute_0
//       queue compute_0_done : 2 <- compute_0       // filled by `complete` commands
//       block entry {
//           %0 = load.8 cursor[step]                // the word's name, or its offset in bytes
//           %1 = arith.shl %0, 16
//           %2 = arith.or %1, @train_0              // a sequence, by name
//           queue_push compute_0_q, %2
//           ...
//           branch %9 ? step : done
//       }
//       block done { terminate }
//   }
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layers/support/source.h"

namespace l3c::l0 {

using RegionId = uint32_t;
using BlockId = uint32_t;
using Register = uint32_t;

enum class ControlOp : uint8_t {
  kLoad,
  kStore,
  kHash,
  kArith,
  kCmp,
  kBranch,
  kJump,
  kQueuePush,
  kQueuePop,
  kTerminate,
};
// 64-bit integers; overflow wraps, shifts take their amount modulo 64, shr fills with zeros. A
// narrow load fills with zeros, a narrow store keeps the low bytes. Offsets are multiples of the
// width. hash is the 64-bit finaliser of splitmix64.
enum class ArithOp : uint8_t { kAdd, kSub, kMul, kAnd, kOr, kShl, kShr };
enum class CmpOp : uint8_t { kEq, kNe, kLt, kGt };  // signed

// A register or an immediate.
struct Operand {
  bool immediate = true;
  int64_t value = 0;      // the immediate, or the register's number
  bool sequence = false;  // an immediate that is a SequenceId; written @NAME

  static Operand Imm(int64_t v) { return {true, v, false}; }
  static Operand Reg(Register r) { return {false, static_cast<int64_t>(r), false}; }
  static Operand Sequence(uint32_t id) { return {true, static_cast<int64_t>(id), true}; }
  bool operator==(const Operand&) const = default;
};

// Every read-write region is part of a checkpoint: the words at the time when a `checkpoint`
// command runs are what a resumed run starts from. Read-only regions keep the plan's values, but
// for one named `signals`, which the host writes: word 0 is not zero once a stop was requested.
enum class RegionAccess : uint8_t {
  kReadOnly,
  kReadWrite,
  kQueue,       // control pushes, the engine of `stream` pops; a push waits while the queue is full
  kCompletion,  // the engine of `stream` pushes (`complete`), control pops; a pop waits for an
                // entry
};
struct Region {
  std::string name;
  RegionAccess access = RegionAccess::kReadOnly;
  int64_t size = 0;             // bytes; a queue: capacity in descriptors
  std::vector<int64_t> values;  // initial 8-byte words
  // Names of the words of `values`, for readers and for the text; all or none.
  std::vector<std::string> names;
  std::string stream;  // queue, completion: the stream at the other end
  support::Span span;
};

struct ControlInstruction {
  ControlOp op = ControlOp::kTerminate;
  Register result = 0;  // load, hash, arith, cmp, queue_pop
  int width = 8;        // load, store: 1, 2, 4 or 8 bytes
  ArithOp arith = ArithOp::kAdd;
  CmpOp cmp = CmpOp::kEq;
  RegionId region = 0;    // load, store, queue_push, queue_pop
  Operand a;              // load, store: the byte offset; others: first operand
  Operand b;              // store: the value; others: second operand
  BlockId target = 0;     // jump; branch when a != 0
  BlockId otherwise = 0;  // branch when a == 0
  support::Span span;
};

struct ControlBlock {
  std::string name;
  std::vector<ControlInstruction> instructions;
  support::Span span;
};

bool HasResult(ControlOp op);                                       // writes `result`
std::vector<Operand> Reads(const ControlInstruction& instruction);  // the operands that it reads
bool Holds(CmpOp op, int64_t a, int64_t b);

// A descriptor on a queue: low 16 bits the sequence, the rest its argument (a batch number). So
// that every push can be checked before the run, a descriptor is written either as `@sequence` or
// as an `or` or `add` of `@sequence` and a `shl` by 16 or more.
inline constexpr int kSequenceBits = 16;

struct ControlUnit {
  std::string name;
  std::vector<Region> regions;
  std::vector<ControlBlock> blocks;  // blocks[0] is the entry
  uint32_t registers = 0;
  support::Span span;
};

}  // namespace l3c::l0
