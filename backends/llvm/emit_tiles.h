// Tiles of the linear form (layers/l0/linearize.h) as registers of AMX where the target has them,
// else as memory of the function's own, op by op to the same bits.
//
// Tiles come in groups: the sums' zeros, then what multiplies into them, then their stores. A group
// has the eight registers to itself. Their shapes are configured at its beginning, or, where all
// groups agree, once for the function.
#pragma once

#include <array>
#include <vector>

#include "backends/llvm/transcendental.h"
#include "layers/l0/linearize.h"
#include "layers/l0/tile_product.h"

namespace l3c::llvm_backend {

class TileEmitter {
 public:
  TileEmitter(const l0::LinearKernel& kernel, const TranscendentalTarget& target,
              llvm::IRBuilderBase& builder)
      : kernel_(kernel), target_(target), b_(builder) {}

  // Whether `op` is this class's to emit: it makes or reads a tile.
  bool Takes(const l0::LinearOp& op) const;

  // At the function's entry, and before each of its returns.
  void Begin();
  void End();

  // An op that is taken; `address` is that of a load or store.
  void Emit(const l0::LinearOp& op, llvm::Value* address);

 private:
  // Rows and lanes of each register; 0 rows: not used.
  using Shapes = std::array<l0::RegisterType, l0::kTileRegisters>;

  bool IsTile(l0::Reg reg) const;
  void AssignRegisters();
  void Configure(const Shapes& shapes);
  void EmitNative(const l0::LinearOp& op, llvm::Value* address);
  void EmitInMemory(const l0::LinearOp& op, llvm::Value* address);
  void EmitProduct(const l0::LinearOp& op);

  // ---- In memory: a row of kTileEdge words after another -------------------------------------

  llvm::Value* RowOf(l0::Reg tile, llvm::Value* row);
  llvm::Value* LanesBelow(unsigned lanes);
  // Runs `body` with a counter from 0 to before `count`; what it returns is next in `carried`.
  template <typename Body>
  std::vector<llvm::Value*> Loop(int64_t count, std::vector<llvm::Value*> carried,
                                 const Body& body);

  const l0::LinearKernel& kernel_;
  const TranscendentalTarget& target_;
  llvm::IRBuilderBase& b_;
  std::vector<int> numbers_;          // of the register that holds a tile; -1
  std::vector<Shapes> groups_;        // in the order of the ops
  bool one_shape_ = false;            // all groups have the same
  size_t group_ = 0;                  // the next to begin
  bool zeroing_ = false;              // the op before was a zero of this group
  std::vector<llvm::Value*> memory_;  // of each tile
};

}  // namespace l3c::llvm_backend
