#include "backends/llvm/emit_control.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "layers/l0/control_code.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"

namespace l3c::llvm_backend {
namespace {

using l0::BlockId;
using l0::ControlFrame;
using l0::ControlInstruction;
using l0::ControlOp;
using l0::Operand;
using l0::Region;
using l0::RegionId;

bool IsMemory(const Region& region) {
  return region.access == l0::RegionAccess::kReadOnly ||
         region.access == l0::RegionAccess::kReadWrite;
}

class ControlEmitter {
 public:
  ControlEmitter(const l0::ControlUnit& unit, const std::string& name, bool scopes,
                 llvm::Module& module)
      : unit_(unit), name_(name), module_(module), context_(module.getContext()), b_(context_) {
    if (scopes) MakeScopes();
  }

  void Emit() {
    llvm::Type* pointer = llvm::PointerType::getUnqual(context_);
    llvm::Type* none = b_.getVoidTy();
    std::vector<llvm::Type*> types = {pointer};
    for (RegionId r = 0; r < unit_.regions.size(); ++r) {
      if (!IsMemory(unit_.regions[r])) continue;
      argument_[r] = static_cast<unsigned>(types.size());
      types.push_back(pointer);
    }
    // Comes first, so that the code is entered at its first byte.
    auto* entry = llvm::Function::Create(llvm::FunctionType::get(none, {pointer}, false),
                                         llvm::Function::ExternalLinkage, name_, module_);
    entry->setDoesNotThrow();
    body_ = llvm::Function::Create(llvm::FunctionType::get(none, types, false),
                                   llvm::Function::PrivateLinkage, name_ + ".body", module_);
    body_->setDoesNotThrow();
    body_->getArg(0)->setName("frame");
    for (const auto& [region, at] : argument_) {
      body_->getArg(at)->setName(unit_.regions[region].name);
      // All of it is there, so a load may also be made where it would not have been.
      const auto size = static_cast<uint64_t>(unit_.regions[region].size);
      if (size > 0) body_->addDereferenceableParamAttr(at, size);
      body_->addParamAttr(at, llvm::Attribute::getWithAlignment(context_, llvm::Align(8)));
    }
    EmitBody();

    b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", entry));
    std::vector<llvm::Value*> args(types.size(), entry->getArg(0));
    for (const auto& [region, at] : argument_) {
      const size_t offset = offsetof(ControlFrame, regions) + sizeof(std::byte*) * region;
      args[at] = b_.CreateLoad(
          pointer, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), entry->getArg(0), offset));
    }
    b_.CreateCall(body_, args);
    b_.CreateRetVoid();
  }

 private:
  // ---- What may alias -------------------------------------------------------------------------

  void MakeScopes() {
    llvm::MDBuilder metadata(context_);
    llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain(name_);
    frame_scope_ = metadata.createAnonymousAliasScope(domain, "frame");
    for (RegionId r = 0; r < unit_.regions.size(); ++r) {
      if (IsMemory(unit_.regions[r])) {
        scopes_[r] = metadata.createAnonymousAliasScope(domain, unit_.regions[r].name);
      }
    }
  }

  // The access is of `scope` and of no other.
  template <class Access>
  Access* InScope(Access* access, llvm::MDNode* scope) {
    if (scope == nullptr) return access;
    std::vector<llvm::Metadata*> others;
    if (scope != frame_scope_) others.push_back(frame_scope_);
    for (const auto& [region, other] : scopes_) {
      if (other != scope) others.push_back(other);
    }
    access->setMetadata(llvm::LLVMContext::MD_alias_scope, llvm::MDNode::get(context_, {scope}));
    if (!others.empty()) {
      access->setMetadata(llvm::LLVMContext::MD_noalias, llvm::MDNode::get(context_, others));
    }
    return access;
  }
  llvm::MDNode* ScopeOf(RegionId region) const {
    const auto found = scopes_.find(region);
    return found == scopes_.end() ? nullptr : found->second;
  }

  // ---- The frame ------------------------------------------------------------------------------

  llvm::Value* Field(size_t offset) {
    return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), body_->getArg(0), offset);
  }
  void StoreField(size_t offset, llvm::Value* value) {
    InScope(b_.CreateAlignedStore(value, Field(offset), llvm::Align(8)), frame_scope_);
  }
  llvm::Value* LoadField(size_t offset, llvm::Type* type) {
    return InScope(b_.CreateAlignedLoad(type, Field(offset), llvm::Align(8)), frame_scope_);
  }

  llvm::BasicBlock* NewBlock(const std::string& name) {
    return llvm::BasicBlock::Create(context_, name, body_);
  }

  void EndHere(l0::ControlEnd end, BlockId block, size_t instruction) {
    StoreField(offsetof(ControlFrame, end), b_.getInt64(static_cast<uint64_t>(end)));
    StoreField(offsetof(ControlFrame, block), b_.getInt64(block));
    StoreField(offsetof(ControlFrame, instruction), b_.getInt64(instruction));
    b_.CreateRetVoid();
  }

  // Goes on where `condition` holds; else the unit ends here.
  void Require(llvm::Value* condition, l0::ControlEnd end, BlockId block, size_t instruction) {
    llvm::BasicBlock* out = NewBlock("out");
    llvm::BasicBlock* on = NewBlock("on");
    b_.CreateCondBr(condition, on, out);
    b_.SetInsertPoint(out);
    EndHere(end, block, instruction);
    b_.SetInsertPoint(on);
  }

  // ---- Blocks ---------------------------------------------------------------------------------

  // Each after one that leads to it, so that values are made before they are used.
  std::vector<BlockId> Order() const {
    std::vector<BlockId> post;
    std::vector<bool> seen(unit_.blocks.size(), false);
    std::vector<std::pair<BlockId, int>> path = {{0, 0}};
    seen[0] = true;
    while (!path.empty()) {
      auto& [block, visited] = path.back();
      const ControlInstruction& last = unit_.blocks[block].instructions.back();
      const int successors = last.op == ControlOp::kBranch ? 2
                             : last.op == ControlOp::kJump ? 1
                                                           : 0;
      if (visited == successors) {
        post.push_back(block);
        path.pop_back();
        continue;
      }
      const BlockId to = visited++ == 0 ? last.target : last.otherwise;
      if (seen[to]) continue;
      seen[to] = true;
      path.emplace_back(to, 0);
    }
    std::reverse(post.begin(), post.end());
    return post;
  }

  void EmitBody() {
    // The entry of a function has no predecessors; the first block of a unit may.
    llvm::BasicBlock* enter = NewBlock("enter");
    for (const l0::ControlBlock& block : unit_.blocks) blocks_.push_back(NewBlock(block.name));
    values_.assign(unit_.registers, nullptr);
    b_.SetInsertPoint(enter);
    b_.CreateBr(blocks_[0]);
    const std::vector<bool> idle = l0::IdleLoopBlocks(unit_);
    for (const BlockId block : Order()) {
      b_.SetInsertPoint(blocks_[block]);
      if (idle[block]) {
        llvm::Value* fuel =
            b_.CreateSub(LoadField(offsetof(ControlFrame, fuel), b_.getInt64Ty()), b_.getInt64(1));
        StoreField(offsetof(ControlFrame, fuel), fuel);
        Require(b_.CreateICmpSGE(fuel, b_.getInt64(0)), l0::ControlEnd::kIdle, block, 0);
      }
      const auto& instructions = unit_.blocks[block].instructions;
      for (size_t i = 0; i < instructions.size(); ++i) EmitInstruction(instructions[i], block, i);
    }
  }

  llvm::Value* Get(const Operand& operand) {
    if (operand.immediate) return b_.getInt64(static_cast<uint64_t>(operand.value));
    return values_[static_cast<size_t>(operand.value)];
  }

  llvm::Value* AddressOf(const ControlInstruction& i, BlockId block, size_t at) {
    llvm::Value* offset = Get(i.a);
    if (!i.a.immediate) {
      const int64_t size = unit_.regions[i.region].size;
      llvm::Value* low = b_.CreateAnd(offset, b_.getInt64(static_cast<uint64_t>(i.width - 1)));
      llvm::Value* inside = b_.CreateAnd(
          b_.CreateICmpEQ(low, b_.getInt64(0)),
          size < i.width
              ? static_cast<llvm::Value*>(b_.getInt1(false))
              : b_.CreateICmpULE(offset, b_.getInt64(static_cast<uint64_t>(size - i.width))));
      Require(inside, l0::ControlEnd::kOutOfBounds, block, at);
    }
    return b_.CreateGEP(b_.getInt8Ty(), body_->getArg(argument_.at(i.region)), offset);
  }

  llvm::Value* Load(const ControlInstruction& i, BlockId block, size_t at) {
    const Region& region = unit_.regions[i.region];
    llvm::Value* address = AddressOf(i, block, at);
    llvm::Type* type = b_.getIntNTy(static_cast<unsigned>(8 * i.width));
    const llvm::Align align(static_cast<uint64_t>(i.width));
    llvm::LoadInst* load = InScope(b_.CreateAlignedLoad(type, address, align), ScopeOf(i.region));
    if (l0::IsSignals(region)) load->setAtomic(llvm::AtomicOrdering::Monotonic);
    llvm::Value* value = b_.CreateZExt(load, b_.getInt64Ty());
    if (l0::IsSignals(region)) {
      llvm::Value* seen = LoadField(offsetof(ControlFrame, stop_seen), b_.getInt64Ty());
      StoreField(offsetof(ControlFrame, stop_seen), b_.CreateOr(seen, value));
    }
    return value;
  }

  llvm::Value* Hash(llvm::Value* x) {
    const auto number = [&](uint64_t value) { return b_.getInt64(value); };
    const auto fold = [&](llvm::Value* value, uint64_t shift) {
      return b_.CreateXor(value, b_.CreateLShr(value, number(shift)));
    };
    x = b_.CreateAdd(x, number(0x9E3779B97F4A7C15u));
    x = b_.CreateMul(fold(x, 30), number(0xBF58476D1CE4E5B9u));
    x = b_.CreateMul(fold(x, 27), number(0x94D049BB133111EBu));
    return fold(x, 31);
  }

  llvm::Value* Arith(const ControlInstruction& i) {
    llvm::Value* x = Get(i.a);
    llvm::Value* y = Get(i.b);
    llvm::Value* amount = b_.CreateAnd(y, b_.getInt64(63));
    switch (i.arith) {
      case l0::ArithOp::kAdd:
        return b_.CreateAdd(x, y);
      case l0::ArithOp::kSub:
        return b_.CreateSub(x, y);
      case l0::ArithOp::kMul:
        return b_.CreateMul(x, y);
      case l0::ArithOp::kAnd:
        return b_.CreateAnd(x, y);
      case l0::ArithOp::kOr:
        return b_.CreateOr(x, y);
      case l0::ArithOp::kShl:
        return b_.CreateShl(x, amount);
      case l0::ArithOp::kShr:
        return b_.CreateLShr(x, amount);
    }
    return x;
  }

  llvm::Value* Compare(const ControlInstruction& i) {
    llvm::Value* x = Get(i.a);
    llvm::Value* y = Get(i.b);
    llvm::Value* holds = nullptr;
    switch (i.cmp) {
      case l0::CmpOp::kEq:
        holds = b_.CreateICmpEQ(x, y);
        break;
      case l0::CmpOp::kNe:
        holds = b_.CreateICmpNE(x, y);
        break;
      case l0::CmpOp::kLt:
        holds = b_.CreateICmpSLT(x, y);
        break;
      case l0::CmpOp::kGt:
        holds = b_.CreateICmpSGT(x, y);
        break;
    }
    return b_.CreateZExt(holds, b_.getInt64Ty());
  }

  // A call of the host's push or pop, which may read every region that may be written.
  void CallHost(size_t function, const ControlInstruction& i, llvm::Value* last, BlockId block,
                size_t at) {
    llvm::Type* pointer = llvm::PointerType::getUnqual(context_);
    llvm::Type* i64 = b_.getInt64Ty();
    auto* type = llvm::FunctionType::get(i64, {pointer, i64, last->getType()}, false);
    llvm::Value* target = LoadField(function, pointer);
    llvm::Value* host = LoadField(offsetof(ControlFrame, host), pointer);
    llvm::CallInst* call = b_.CreateCall(type, target, {host, b_.getInt64(i.region), last});
    call->setDoesNotThrow();
    StoreField(offsetof(ControlFrame, fuel), b_.getInt64(l0::kMaxIdleTurns));
    Require(b_.CreateICmpNE(call, b_.getInt64(0)), l0::ControlEnd::kStopped, block, at);
  }

  void EmitInstruction(const ControlInstruction& i, BlockId block, size_t at) {
    switch (i.op) {
      case ControlOp::kLoad:
        values_[i.result] = Load(i, block, at);
        return;
      case ControlOp::kStore: {
        llvm::Value* address = AddressOf(i, block, at);
        llvm::Value* value =
            b_.CreateTrunc(Get(i.b), b_.getIntNTy(static_cast<unsigned>(8 * i.width)));
        InScope(b_.CreateAlignedStore(value, address, llvm::Align(static_cast<uint64_t>(i.width))),
                ScopeOf(i.region));
        return;
      }
      case ControlOp::kHash:
        values_[i.result] = Hash(Get(i.a));
        return;
      case ControlOp::kArith:
        values_[i.result] = Arith(i);
        return;
      case ControlOp::kCmp:
        values_[i.result] = Compare(i);
        return;
      case ControlOp::kBranch:
        b_.CreateCondBr(b_.CreateICmpNE(Get(i.a), b_.getInt64(0)), blocks_[i.target],
                        blocks_[i.otherwise]);
        return;
      case ControlOp::kJump:
        b_.CreateBr(blocks_[i.target]);
        return;
      case ControlOp::kQueuePush:
        CallHost(offsetof(ControlFrame, push), i, Get(i.a), block, at);
        return;
      case ControlOp::kQueuePop:
        CallHost(offsetof(ControlFrame, pop), i, Field(offsetof(ControlFrame, popped)), block, at);
        values_[i.result] = LoadField(offsetof(ControlFrame, popped), b_.getInt64Ty());
        return;
      case ControlOp::kTerminate:
        EndHere(l0::ControlEnd::kTerminated, block, at);
        return;
    }
  }

  const l0::ControlUnit& unit_;
  const std::string name_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  llvm::Function* body_ = nullptr;
  llvm::MDNode* frame_scope_ = nullptr;
  std::map<RegionId, llvm::MDNode*> scopes_;
  std::map<RegionId, unsigned> argument_;
  std::vector<llvm::BasicBlock*> blocks_;
  std::vector<llvm::Value*> values_;
};

}  // namespace

void EmitControl(const l0::ControlUnit& unit, const std::string& name, bool scopes,
                 llvm::Module& module) {
  ControlEmitter(unit, name, scopes, module).Emit();
}

}  // namespace l3c::llvm_backend
