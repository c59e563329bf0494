#include "tests/layers/l0/plan/corrupt.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace l3c::l0::testing {
namespace {

using Random = std::mt19937_64;

// One of the indices below `count` for which `fits`; `count` when there is none.
size_t Pick(size_t count, Random& random, const std::function<bool(size_t)>& fits) {
  std::vector<size_t> found;
  for (size_t i = 0; i < count; ++i) {
    if (fits(i)) found.push_back(i);
  }
  return found.empty() ? count : found[random() % found.size()];
}

bool IsLoadOrStore(const Uop& uop) { return uop.op == UOp::kLoad || uop.op == UOp::kStore; }

// Of an access that no guard and no data narrow: the largest element that it touches.
int64_t LargestIndex(const Kernel& kernel, const Uop& uop) {
  int64_t largest = uop.index.constant;
  for (const auto& [axis, coefficient] : uop.index.terms) {
    if (coefficient > 0) largest += coefficient * (kernel.axes[axis].extent - 1);
  }
  return largest;
}

bool Runs(const Kernel& kernel) {
  return std::all_of(kernel.axes.begin(), kernel.axes.end(),
                     [](const Axis& axis) { return axis.extent > 0; });
}

bool IsPlainAccess(const Kernel& kernel, const Uop& uop) {
  return IsLoadOrStore(uop) && uop.guards.empty() && uop.dynamic_stride == 0 && Runs(kernel);
}

struct Place {
  size_t outer = 0, inner = 0;
};

// A place (kernel, op), (sequence, command) or (block, instruction) that fits.
template <class Outer, class Inner>
bool PickPlace(const std::vector<Outer>& outers, std::vector<Inner> Outer::* inners, Random& random,
               const std::function<bool(const Outer&, size_t)>& fits, Place& place) {
  std::vector<Place> found;
  for (size_t o = 0; o < outers.size(); ++o) {
    for (size_t i = 0; i < (outers[o].*inners).size(); ++i) {
      if (fits(outers[o], i)) found.push_back({o, i});
    }
  }
  if (found.empty()) return false;
  place = found[random() % found.size()];
  return true;
}

std::string At(const std::string& what, size_t i) { return what + " " + std::to_string(i); }

// ---- Kernels ----------------------------------------------------------------------------------

std::string PushIndexOut(Plan& plan, Random& random) {
  Place at;
  if (!PickPlace<Kernel, Uop>(
          plan.kernels, &Kernel::uops, random,
          [](const Kernel& k, size_t i) { return IsPlainAccess(k, k.uops[i]); }, at)) {
    return "";
  }
  Kernel& kernel = plan.kernels[at.outer];
  Uop& uop = kernel.uops[at.inner];
  const int64_t elements = tensor::NumElements(kernel.params[uop.param].shape);
  uop.index.constant += elements - LargestIndex(kernel, uop) + static_cast<int64_t>(random() % 3);
  return "kernel " + kernel.name + ": " + At("access", at.inner) + " reaches behind its buffer";
}

std::string PullIndexOut(Plan& plan, Random& random) {
  Place at;
  if (!PickPlace<Kernel, Uop>(
          plan.kernels, &Kernel::uops, random,
          [](const Kernel& k, size_t i) {
            const Uop& u = k.uops[i];
            const auto negative = [](const auto& t) { return t.second < 0; };
            return IsPlainAccess(k, u) &&
                   std::none_of(u.index.terms.begin(), u.index.terms.end(), negative);
          },
          at)) {
    return "";
  }
  Kernel& kernel = plan.kernels[at.outer];
  kernel.uops[at.inner].index.constant = -1 - static_cast<int64_t>(random() % 5);
  return "kernel " + kernel.name + ": " + At("access", at.inner) + " begins before its buffer";
}

std::string LengthenAxis(Plan& plan, Random& random) {
  Place at;
  if (!PickPlace<Kernel, Uop>(
          plan.kernels, &Kernel::uops, random,
          [](const Kernel& k, size_t i) {
            const Uop& u = k.uops[i];
            return IsPlainAccess(k, u) && !u.index.terms.empty() &&
                   u.index.terms.front().second > 0 &&
                   LargestIndex(k, u) + 1 == tensor::NumElements(k.params[u.param].shape);
          },
          at)) {
    return "";
  }
  Kernel& kernel = plan.kernels[at.outer];
  Axis& axis = kernel.axes[kernel.uops[at.inner].index.terms.front().first];
  axis.extent += axis.vector * axis.tile;
  return "kernel " + kernel.name + ": axis " + axis.name + " goes on";
}

std::string RetypeParameter(Plan& plan, Random& random) {
  const size_t k = random() % plan.kernels.size();
  Kernel& kernel = plan.kernels[k];
  Param& param = kernel.params[random() % kernel.params.size()];
  param.dtype = param.dtype == DType::kF32 ? DType::kI32 : DType::kF32;
  return "kernel " + kernel.name + ": parameter " + param.name + " has another type";
}

std::string RetypeConstant(Plan& plan, Random& random) {
  const auto used = [](const Kernel& k, size_t i) {
    if (k.uops[i].op != UOp::kConst || k.uops[i].dtype != DType::kF32) return false;
    return std::any_of(k.uops.begin(), k.uops.end(), [&](const Uop& u) {
      const bool binary = u.op == UOp::kAdd || u.op == UOp::kMul || u.op == UOp::kMax;
      return binary && u.src.size() == 2 && u.src[0] != u.src[1] &&
             std::find(u.src.begin(), u.src.end(), i) != u.src.end();
    });
  };
  Place at;
  if (!PickPlace<Kernel, Uop>(plan.kernels, &Kernel::uops, random, used, at)) return "";
  plan.kernels[at.outer].uops[at.inner].dtype = DType::kI64;
  return "kernel " + plan.kernels[at.outer].name + ": " + At("constant", at.inner) + " is an i64";
}

std::string LoopOperands(Plan& plan, Random& random) {
  Place at;
  if (!PickPlace<Kernel, Uop>(
          plan.kernels, &Kernel::uops, random,
          [](const Kernel& k, size_t i) { return !k.uops[i].src.empty(); }, at)) {
    return "";
  }
  Uop& uop = plan.kernels[at.outer].uops[at.inner];
  uop.src[random() % uop.src.size()] = static_cast<UopId>(at.inner + random() % 3);
  return "kernel " + plan.kernels[at.outer].name + ": " + At("op", at.inner) + " uses a later one";
}

std::string StoreToInput(Plan& plan, Random& random) {
  Place at;
  if (!PickPlace<Kernel, Uop>(
          plan.kernels, &Kernel::uops, random,
          [](const Kernel& k, size_t i) {
            return k.uops[i].op == UOp::kStore && k.params[k.uops[i].param].access != Access::kIn;
          },
          at)) {
    return "";
  }
  Kernel& kernel = plan.kernels[at.outer];
  kernel.params[kernel.uops[at.inner].param].access = Access::kIn;
  return "kernel " + kernel.name + " stores to what it only reads";
}

std::string TwoBlocksOneElement(Plan& plan, Random& random) {
  Place at;
  // A store that depends on a grid axis of several blocks forgets it.
  const auto fits = [](const Kernel& k, size_t i) {
    const Uop& u = k.uops[i];
    if (u.op != UOp::kStore || u.accumulate || !Runs(k)) return false;
    return std::any_of(u.index.terms.begin(), u.index.terms.end(), [&](const auto& term) {
      const Axis& axis = k.axes[term.first];
      return axis.kind == AxisKind::kGrid && axis.extent > axis.block;
    });
  };
  if (!PickPlace<Kernel, Uop>(plan.kernels, &Kernel::uops, random, fits, at)) return "";
  Kernel& kernel = plan.kernels[at.outer];
  std::erase_if(kernel.uops[at.inner].index.terms, [&](const auto& term) {
    const Axis& axis = kernel.axes[term.first];
    return axis.kind == AxisKind::kGrid && axis.extent > axis.block;
  });
  return "kernel " + kernel.name + ": blocks store to the same elements";
}

// ---- Slots and lifetimes ----------------------------------------------------------------------

std::set<size_t> UsersOf(const Plan& plan, BufferId buffer) {
  std::set<size_t> users;
  for (size_t s = 0; s < plan.sequences.size(); ++s) {
    for (const Command& c : plan.sequences[s].commands) {
      bool uses = std::find(c.args.begin(), c.args.end(), buffer) != c.args.end() ||
                  std::find(c.mask.begin(), c.mask.end(), buffer) != c.mask.end();
      for (const auto& [name, id] : c.fields) uses = uses || id == buffer;
      for (const auto& [name, id] : c.values) uses = uses || id == buffer;
      if (uses) users.insert(s);
    }
  }
  return users;
}

bool LiveTogether(const Plan& plan, BufferId a, BufferId b) {
  const Buffer &x = plan.buffers[a], &y = plan.buffers[b];
  if (a == b || x.pool != y.pool || x.size == 0 || y.size == 0) return false;
  if (x.last_use < y.first_use || y.last_use < x.first_use) return false;
  if (plan.pools[x.pool].kind != PoolKind::kArena) return true;
  const std::set<size_t> first = UsersOf(plan, a), second = UsersOf(plan, b);
  return std::any_of(first.begin(), first.end(), [&](size_t s) { return second.contains(s); });
}

std::string LayOnNeighbour(Plan& plan, Random& random) {
  std::vector<std::pair<BufferId, BufferId>> pairs;
  for (BufferId a = 0; a < plan.buffers.size(); ++a) {
    for (BufferId b = 0; b < plan.buffers.size(); ++b) {
      if (plan.buffers[a].size <= plan.buffers[b].size && LiveTogether(plan, a, b)) {
        pairs.emplace_back(a, b);
      }
    }
  }
  if (pairs.empty()) return "";
  const auto [a, b] = pairs[random() % pairs.size()];
  plan.buffers[a].offset = plan.buffers[b].offset;
  return "buffer " + plan.buffers[a].name + " lies on " + plan.buffers[b].name;
}

// Arena buffers whose life is as long as their use.
std::string ShortenLife(Plan& plan, Random& random) {
  const auto longer = [&](size_t i) {
    const Buffer& b = plan.buffers[i];
    return plan.pools[b.pool].kind == PoolKind::kArena && b.last_use > b.first_use &&
           b.last_use != kWholeRun && !UsersOf(plan, static_cast<BufferId>(i)).empty();
  };
  const size_t i = Pick(plan.buffers.size(), random, longer);
  if (i == plan.buffers.size()) return "";
  Buffer& buffer = plan.buffers[i];
  if (random() % 2) {
    buffer.last_use = buffer.first_use;
  } else {
    buffer.first_use = buffer.last_use;
  }
  return "buffer " + buffer.name + " lives too short";
}

std::string Misalign(Plan& plan, Random& random) {
  // Of an arena also what lies within a line is, at its elements' size.
  Buffer& buffer = plan.buffers[random() % plan.buffers.size()];
  const bool arena = plan.pools[buffer.pool].kind == PoolKind::kArena;
  const auto element = static_cast<int64_t>(tensor::SizeOf(buffer.dtype));
  if (arena && element < 2) return "";
  buffer.offset += arena ? 1 + static_cast<int64_t>(random() % (element - 1))
                         : 4 + 4 * static_cast<int64_t>(random() % 15);
  return "buffer " + buffer.name + " is not aligned";
}

// Beside what several blocks of a launch write.
std::string ShareALine(Plan& plan, Random& random) {
  std::vector<std::pair<BufferId, BufferId>> pairs;
  for (const Sequence& sequence : plan.sequences) {
    for (const Command& command : sequence.commands) {
      if (command.kind != CommandKind::kLaunch) continue;
      const Kernel& kernel = plan.kernels[command.kernel];
      if (NumBlocks(kernel) < 2) continue;
      for (size_t p = 0; p < command.args.size(); ++p) {
        const Buffer& a = plan.buffers[command.args[p]];
        if (kernel.params[p].access == Access::kIn || a.size % kAlignment == 0) continue;
        if (plan.pools[a.pool].kind != PoolKind::kArena) continue;
        for (BufferId b : command.args) {
          const Buffer& beside = plan.buffers[b];
          const bool fits = a.size % kAlignment + beside.size <= kAlignment;
          if (&beside != &a && beside.pool == a.pool && fits)
            pairs.emplace_back(command.args[p], b);
        }
      }
    }
  }
  if (pairs.empty()) return "";
  const auto [a, b] = pairs[random() % pairs.size()];
  plan.buffers[b].offset = plan.buffers[a].offset + plan.buffers[a].size;
  return "buffer " + plan.buffers[b].name + " lies in a line of " + plan.buffers[a].name;
}

std::string ResizeSlot(Plan& plan, Random& random) {
  Buffer& buffer = plan.buffers[random() % plan.buffers.size()];
  buffer.size += random() % 2 ? 4 : -4;
  return "buffer " + buffer.name + " has a slot of another size";
}

std::string GiveAnother(Plan& plan, Random& random) {
  Place at;
  if (!PickPlace<Sequence, Command>(
          plan.sequences, &Sequence::commands, random,
          [](const Sequence& s, size_t i) { return s.commands[i].kind == CommandKind::kLaunch; },
          at)) {
    return "";
  }
  Command& command = plan.sequences[at.outer].commands[at.inner];
  const size_t arg = random() % command.args.size();
  const Buffer& old = plan.buffers[command.args[arg]];
  const size_t other = Pick(plan.buffers.size(), random, [&](size_t i) {
    const Buffer& b = plan.buffers[i];
    return b.dtype != old.dtype || tensor::NumElements(b.shape) != tensor::NumElements(old.shape);
  });
  if (other == plan.buffers.size()) return "";
  command.args[arg] = static_cast<BufferId>(other);
  return At("command", at.inner) + " of " + plan.sequences[at.outer].name + " gets buffer " +
         plan.buffers[other].name;
}

// A launch whose arena output a later command of the sequence reads.
std::string DropWriter(Plan& plan, Random& random) {
  const auto fits = [&](const Sequence& s, size_t i) {
    const Command& c = s.commands[i];
    if (c.kind != CommandKind::kLaunch) return false;
    for (size_t p = 0; p < c.args.size(); ++p) {
      if (plan.kernels[c.kernel].params[p].access != Access::kOut) continue;
      if (plan.pools[plan.buffers[c.args[p]].pool].kind != PoolKind::kArena) continue;
      for (size_t later = i + 1; later < s.commands.size(); ++later) {
        const Command& reader = s.commands[later];
        if (reader.kind != CommandKind::kLaunch) continue;
        for (size_t q = 0; q < reader.args.size(); ++q) {
          const bool reads = plan.kernels[reader.kernel].params[q].access == Access::kIn;
          if (reads && reader.args[q] == c.args[p]) return true;
        }
      }
    }
    return false;
  };
  Place at;
  if (!PickPlace<Sequence, Command>(plan.sequences, &Sequence::commands, random, fits, at)) {
    return "";
  }
  auto& commands = plan.sequences[at.outer].commands;
  commands.erase(commands.begin() + static_cast<std::ptrdiff_t>(at.inner));
  return At("command", at.inner) + " of " + plan.sequences[at.outer].name + " is gone";
}

std::string DropInit(Plan& plan, Random& random) {
  const auto read = [&](size_t i) {
    return std::any_of(plan.sequences.begin(), plan.sequences.end(), [&](const Sequence& s) {
      return std::any_of(s.commands.begin(), s.commands.end(), [&](const Command& c) {
        if (c.kind != CommandKind::kLaunch) return false;
        for (size_t p = 0; p < c.args.size(); ++p) {
          const bool reads = plan.kernels[c.kernel].params[p].access != Access::kOut;
          if (reads && c.args[p] == plan.init[i].buffer) return true;
        }
        return false;
      });
    });
  };
  const size_t i = Pick(plan.init.size(), random, read);
  if (i == plan.init.size()) return "";
  const std::string name = plan.buffers[plan.init[i].buffer].name;
  plan.init.erase(plan.init.begin() + static_cast<std::ptrdiff_t>(i));
  return "buffer " + name + " has no initial value";
}

// ---- Streams and tokens -----------------------------------------------------------------------

bool IsToken(const Command& c) {
  return c.kind == CommandKind::kWait || c.kind == CommandKind::kSignal;
}

std::string DropTokenCommand(Plan& plan, Random& random, CommandKind kind) {
  Place at;
  if (!PickPlace<Sequence, Command>(
          plan.sequences, &Sequence::commands, random,
          [&](const Sequence& s, size_t i) { return s.commands[i].kind == kind; }, at)) {
    return "";
  }
  Sequence& sequence = plan.sequences[at.outer];
  // What follows keeps its position in the lives of buffers.
  Command& command = sequence.commands[at.inner];
  const std::string token = plan.tokens[command.token].name;
  const size_t before = at.inner;
  sequence.commands.erase(sequence.commands.begin() + static_cast<std::ptrdiff_t>(at.inner));
  for (BufferId b = 0; b < plan.buffers.size(); ++b) {
    Buffer& buffer = plan.buffers[b];
    if (plan.pools[buffer.pool].kind != PoolKind::kArena) continue;
    if (!UsersOf(plan, b).contains(at.outer)) continue;
    if (buffer.first_use > static_cast<int64_t>(before)) --buffer.first_use;
  }
  return std::string(kind == CommandKind::kWait ? "a wait for " : "a signal of ") + token +
         " is gone from " + sequence.name;
}

std::string DropWait(Plan& plan, Random& random) {
  return DropTokenCommand(plan, random, CommandKind::kWait);
}
std::string DropSignal(Plan& plan, Random& random) {
  return DropTokenCommand(plan, random, CommandKind::kSignal);
}

std::string SwapToken(Plan& plan, Random& random) {
  Place at;
  if (plan.tokens.size() < 2 ||
      !PickPlace<Sequence, Command>(
          plan.sequences, &Sequence::commands, random,
          [](const Sequence& s, size_t i) { return IsToken(s.commands[i]); }, at)) {
    return "";
  }
  Command& command = plan.sequences[at.outer].commands[at.inner];
  const TokenId old = command.token;
  command.token =
      static_cast<TokenId>((old + 1 + random() % (plan.tokens.size() - 1)) % plan.tokens.size());
  return At("command", at.inner) + " of " + plan.sequences[at.outer].name + " takes token " +
         plan.tokens[command.token].name + " for " + plan.tokens[old].name;
}

std::string TakeTokenAway(Plan& plan, Random& random) {
  const size_t t =
      Pick(plan.tokens.size(), random, [&](size_t i) { return plan.tokens[i].initial == 1; });
  if (t == plan.tokens.size()) return "";
  plan.tokens[t].initial = 0;
  return "token " + plan.tokens[t].name + " begins with none";
}

// A batch counts as there, or its place as free, once too often. (Where the queues by themselves
// keep the streams apart this is no fault: the loader must be able to come a batch ahead.)
std::string GrantBatch(Plan& plan, Random& random) {
  const size_t t =
      Pick(plan.tokens.size(), random, [&](size_t i) { return plan.tokens[i].initial == 0; });
  if (t == plan.tokens.size()) return "";
  plan.tokens[t].initial = 1;
  return "token " + plan.tokens[t].name + " begins with one";
}

// The place of a batch is given back before the batch has been read.
std::string FreeTooSoon(Plan& plan, Random& random) {
  const auto fits = [&](const Sequence& s, size_t i) {
    if (s.commands[i].kind != CommandKind::kSignal || i < 2) return false;
    if (plan.streams[s.stream].kind != StreamKind::kCompute) return false;
    const Command& before = s.commands[i - 1];
    return before.kind == CommandKind::kLaunch &&
           std::any_of(before.args.begin(), before.args.end(), [&](BufferId b) {
             return plan.pools[plan.buffers[b].pool].kind == PoolKind::kStaging;
           });
  };
  Place at;
  if (!PickPlace<Sequence, Command>(plan.sequences, &Sequence::commands, random, fits, at)) {
    return "";
  }
  auto& commands = plan.sequences[at.outer].commands;
  // The buffers of the launch live where it goes.
  for (BufferId b : commands[at.inner - 1].args) {
    Buffer& buffer = plan.buffers[b];
    if (plan.pools[buffer.pool].kind != PoolKind::kArena) continue;
    buffer.last_use = std::max(buffer.last_use, static_cast<int64_t>(at.inner));
  }
  std::swap(commands[at.inner - 1], commands[at.inner]);
  return "sequence " + plan.sequences[at.outer].name + " gives its batch back before it is read";
}

std::string LoadWithoutWaiting(Plan& plan, Random& random) {
  const auto fits = [](const Sequence& s, size_t i) {
    return s.commands[i].kind == CommandKind::kLoad && i > 0 &&
           s.commands[i - 1].kind == CommandKind::kWait;
  };
  Place at;
  if (!PickPlace<Sequence, Command>(plan.sequences, &Sequence::commands, random, fits, at)) {
    return "";
  }
  auto& commands = plan.sequences[at.outer].commands;
  std::swap(commands[at.inner - 1], commands[at.inner]);
  return "sequence " + plan.sequences[at.outer].name + " loads before it waits";
}

std::string ReadWithoutWaiting(Plan& plan, Random& random) {
  const auto fits = [&](const Sequence& s, size_t i) {
    const Command& c = s.commands[i];
    return c.kind == CommandKind::kLaunch && i > 0 &&
           s.commands[i - 1].kind == CommandKind::kWait &&
           std::any_of(c.args.begin(), c.args.end(), [&](BufferId b) {
             return plan.pools[plan.buffers[b].pool].kind == PoolKind::kStaging;
           });
  };
  Place at;
  if (!PickPlace<Sequence, Command>(plan.sequences, &Sequence::commands, random, fits, at)) {
    return "";
  }
  auto& commands = plan.sequences[at.outer].commands;
  for (BufferId b : commands[at.inner].args) {
    Buffer& buffer = plan.buffers[b];
    if (plan.pools[buffer.pool].kind != PoolKind::kArena) continue;
    buffer.first_use = std::min(buffer.first_use, static_cast<int64_t>(at.inner) - 1);
  }
  std::swap(commands[at.inner - 1], commands[at.inner]);
  return "sequence " + plan.sequences[at.outer].name + " computes before it waits";
}

// ---- Capacity and headroom --------------------------------------------------------------------

std::string ShrinkNode(Plan& plan, Random& random) {
  const std::string node = plan.pools[random() % plan.pools.size()].node;
  int64_t used = 0;
  for (const Pool& pool : plan.pools) used += pool.node == node ? pool.size : 0;
  if (used == 0) return "";
  for (Pool& pool : plan.pools) {
    if (pool.node == node)
      pool.capacity = used - 1 - static_cast<int64_t>(random() % 2) * (used / 2);
  }
  return "node " + node + " is too small";
}

std::string ShrinkPool(Plan& plan, Random& random) {
  const size_t p = random() % plan.pools.size();
  int64_t used = 0;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.pool == p) used = std::max(used, buffer.offset + buffer.size);
  }
  if (used == 0) return "";
  plan.pools[p].size = used - 1;
  return "pool " + plan.pools[p].name + " is too small";
}

std::string GrowPool(Plan& plan, Random& random) {
  Pool& pool = plan.pools[random() % plan.pools.size()];
  pool.size = pool.capacity + 1;
  return "pool " + pool.name + " is larger than its node";
}

std::string MoveOut(Plan& plan, Random& random) {
  const size_t i =
      Pick(plan.buffers.size(), random, [&](size_t b) { return plan.buffers[b].size > 0; });
  if (i == plan.buffers.size()) return "";
  Buffer& buffer = plan.buffers[i];
  const int64_t end = plan.pools[buffer.pool].size;
  buffer.offset = (end + kAlignment - 1) / kAlignment * kAlignment;
  return "buffer " + buffer.name + " lies behind its pool";
}

std::string ShareStaging(Plan& plan, Random& random) {
  // Two loads of one sampler in different sequences: the second takes the first one's buffers.
  std::map<SamplerId, std::vector<Command*>> loads;
  for (Sequence& sequence : plan.sequences) {
    for (Command& command : sequence.commands) {
      const bool load = command.kind == CommandKind::kLoad && !command.fields.empty();
      if (load) loads[command.sampler].push_back(&command);
    }
  }
  std::erase_if(loads, [](const auto& entry) { return entry.second.size() < 2; });
  if (loads.empty()) return "";
  auto it = loads.begin();
  std::advance(it, static_cast<std::ptrdiff_t>(random() % loads.size()));
  const size_t first = random() % (it->second.size() - 1);
  it->second[first + 1]->fields = it->second[first]->fields;
  it->second[first + 1]->mask = it->second[first]->mask;
  return "two batches in flight share their staging buffers";
}

// ---- References -------------------------------------------------------------------------------

std::string DanglingId(Plan& plan, Random& random) {
  const uint32_t far = 100000 + static_cast<uint32_t>(random() % 1000);
  switch (random() % 6) {
    case 0:
      plan.buffers[random() % plan.buffers.size()].pool = far;
      return "a buffer is in a pool that is not there";
    case 1:
      plan.init[random() % plan.init.size()].buffer = far;
      return "what is not there gets an initial value";
    case 2:
      plan.samplers[random() % plan.samplers.size()].source = far;
      return "a sampler draws from what is not there";
    case 3:
      plan.sequences[random() % plan.sequences.size()].stream = far;
      return "a sequence runs on no stream";
    case 4: {
      Place at;
      PickPlace<Sequence, Command>(
          plan.sequences, &Sequence::commands, random,
          [](const Sequence& s, size_t i) { return s.commands[i].kind == CommandKind::kLaunch; },
          at);
      Command& command = plan.sequences[at.outer].commands[at.inner];
      if (random() % 2) {
        command.kernel = far;
      } else {
        command.args[random() % command.args.size()] = far;
      }
      return "a launch of what is not there";
    }
    default: {
      Place at;
      PickPlace<Sequence, Command>(
          plan.sequences, &Sequence::commands, random,
          [](const Sequence& s, size_t i) { return IsToken(s.commands[i]); }, at);
      plan.sequences[at.outer].commands[at.inner].token = far;
      return "a token that is not there";
    }
  }
}

std::string SameName(Plan& plan, Random& random) {
  if (plan.buffers.size() < 2) return "";
  const size_t i = random() % (plan.buffers.size() - 1);
  plan.buffers[i + 1].name = plan.buffers[i].name;
  return "two buffers are called " + plan.buffers[i].name;
}

std::string DropArgument(Plan& plan, Random& random) {
  Place at;
  if (!PickPlace<Sequence, Command>(
          plan.sequences, &Sequence::commands, random,
          [](const Sequence& s, size_t i) { return s.commands[i].kind == CommandKind::kLaunch; },
          at)) {
    return "";
  }
  plan.sequences[at.outer].commands[at.inner].args.pop_back();
  return "a launch lacks an argument";
}

// ---- Control ----------------------------------------------------------------------------------

std::string BreakControl(Plan& plan, Random& random) {
  ControlUnit& unit = plan.control[random() % plan.control.size()];
  ControlBlock& block = unit.blocks[random() % unit.blocks.size()];
  Place at;
  const auto pick = [&](auto fits) {
    std::vector<size_t> found;
    for (size_t i = 0; i < block.instructions.size(); ++i) {
      if (fits(block.instructions[i])) found.push_back(i);
    }
    if (found.empty()) return false;
    at.inner = found[random() % found.size()];
    return true;
  };
  switch (random() % 5) {
    case 0:
      block.instructions.pop_back();
      return "block " + block.name + " has no end";
    case 1:
      if (!pick([](const auto& i) {
            return i.op == ControlOp::kJump || i.op == ControlOp::kBranch;
          })) {
        return "";
      }
      block.instructions[at.inner].target = 100000;
      return "block " + block.name + " leads nowhere";
    case 2:
      if (!pick([](const auto& i) { return i.op == ControlOp::kLoad && i.a.immediate; })) return "";
      block.instructions[at.inner].a.value += 4096;
      return "block " + block.name + " reads outside of a region";
    case 3:
      if (!pick([](const auto& i) { return i.op == ControlOp::kLoad && i.width == 8; })) return "";
      block.instructions[at.inner].width = 3;
      return "block " + block.name + " reads three bytes";
    default:
      if (!pick([&](const auto& i) {
            return i.op == ControlOp::kStore &&
                   unit.regions[i.region].access == RegionAccess::kReadWrite;
          })) {
        return "";
      }
      unit.regions[block.instructions[at.inner].region].access = RegionAccess::kReadOnly;
      return "unit " + unit.name + " writes what is read-only";
  }
}

// The only push of a sequence of tokens: its batch is loaded and never computed, or the reverse.
std::string DropPush(Plan& plan, Random& random) {
  struct Push {
    size_t unit, block, instruction;
  };
  std::vector<Push> pushes;
  for (size_t u = 0; u < plan.control.size(); ++u) {
    std::map<RegionId, int> of_queue;
    for (size_t b = 0; b < plan.control[u].blocks.size(); ++b) {
      const auto& instructions = plan.control[u].blocks[b].instructions;
      for (size_t i = 0; i < instructions.size(); ++i) {
        if (instructions[i].op != ControlOp::kQueuePush || instructions[i].a.immediate) continue;
        const auto stream =
            std::find_if(plan.streams.begin(), plan.streams.end(), [&](const Stream& s) {
              return s.name == plan.control[u].regions[instructions[i].region].stream;
            });
        if (stream != plan.streams.end() && stream->kind == StreamKind::kLoader) {
          pushes.push_back({u, b, i});
        }
      }
    }
  }
  if (pushes.empty()) return "";
  const Push at = pushes[random() % pushes.size()];
  auto& instructions = plan.control[at.unit].blocks[at.block].instructions;
  instructions.erase(instructions.begin() + static_cast<std::ptrdiff_t>(at.instruction));
  return "a batch of unit " + plan.control[at.unit].name + " is not loaded";
}

}  // namespace

const std::vector<Corruption>& Corruptions() {
  static const std::vector<Corruption> all = {
      {"kernel", "index behind its buffer", PushIndexOut},
      {"kernel", "index before its buffer", PullIndexOut},
      {"kernel", "axis too long", LengthenAxis},
      {"kernel", "parameter of another type", RetypeParameter},
      {"kernel", "constant of another type", RetypeConstant},
      {"kernel", "operand that comes later", LoopOperands},
      {"kernel", "store to an input", StoreToInput},
      {"kernel", "blocks that overlap", TwoBlocksOneElement},
      {"lifetime", "slots that overlap", LayOnNeighbour},
      {"lifetime", "life too short", ShortenLife},
      {"lifetime", "slot misaligned", Misalign},
      {"lifetime", "line of several threads", ShareALine},
      {"lifetime", "slot of another size", ResizeSlot},
      {"lifetime", "buffer of another type", GiveAnother},
      {"lifetime", "writer gone", DropWriter},
      {"lifetime", "initial value gone", DropInit},
      {"hazard", "load before its wait", LoadWithoutWaiting},
      {"hazard", "launch before its wait", ReadWithoutWaiting},
      {"hazard", "batch given back too soon", FreeTooSoon},
      {"hazard", "batch granted", GrantBatch},
      {"sync", "wait gone", DropWait},
      {"sync", "signal gone", DropSignal},
      {"sync", "another token", SwapToken},
      {"sync", "token taken away", TakeTokenAway},
      {"sync", "push gone", DropPush},
      {"capacity", "node too small", ShrinkNode},
      {"capacity", "pool too small", ShrinkPool},
      {"capacity", "pool too large", GrowPool},
      {"capacity", "slot behind its pool", MoveOut},
      {"headroom", "staging shared", ShareStaging},
      {"reference", "dangling id", DanglingId},
      {"reference", "name twice", SameName},
      {"reference", "argument gone", DropArgument},
      {"control", "control broken", BreakControl},
  };
  return all;
}

}  // namespace l3c::l0::testing
