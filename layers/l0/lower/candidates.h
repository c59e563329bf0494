// The kernels that a step could be made of, and what each could compute in registers.
//
// A candidate is named by what it stores (its roots) and by its kind:
//   loop            elementwise work over the root's shape; reductions of whole rows may run inside
//   anchor          the same around one matmul whose elements stay in registers (an epilogue)
//   scatter         a loop over rows that are added into the root, wherever their numbers say
//   sums            a loop over the rows that a sum takes in, which makes other sums over them in
//                   the same walk (sum_groups.h): a row's own are passes, those over rows are added
//                   up in memory
//   last            a loop once more after all others, for small values that only reports need: it
//                   can take what kernels of the backward pass made on their way
//   update          a loop that writes the new values of state fields over the old ones
//   update anchor   an update inside the epilogue of the matmul that makes its gradient; with it
//                   those of one figure a column whose gradient sums the rows of a factor (a bias)
//
// From the roots the analysis walks to the operands and notes, for every value it meets, where the
// value's element lies (index_map.h), how often it would be computed, and whether it may be
// computed here or only loaded. Each reduction inside a kernel is a context of its own, because
// what two passes compute is computed twice; what does not depend on the pass is hoisted out of it.
//
// Every candidate has a position in one fixed order, and a value in memory has versions: version q
// of v is v as stored by the q-th of the candidates that can store it, or by an earlier one. A
// kernel loads only versions of earlier kernels. Whatever is chosen can therefore be put in an
// order, without a check afterwards. State is overwritten by updates alone, which come after all
// others, so the old value is there for everybody who may want it. (encoding.md has Stored by
// layout; here a layout other than the natural one is a stored view, a value like any other.)
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "layers/l0/lower/index_map.h"
#include "layers/l0/lower/values.h"

namespace l3c::l0::lower {

enum class KernelKind : uint8_t { kLoop, kAnchor, kSums, kLast, kUpdate, kUpdateAnchor };

// One way in which an entry's value can be computed in registers.
struct Inline {
  uint32_t definition = 0;  // of the value
  int32_t pass = -1;        // reductions: the context of the pass
};

struct Entry {
  uint32_t context = 0;  // of the candidate
  ValueId value = 0;
  std::vector<IndexMap> maps;  // where it is needed; usually one
  uint64_t axes = 0;           // that the maps depend on
  double points = 0;           // loads a run, if loaded here
  uint64_t computed_axes = 0;  // that it depends on if computed here: a broadcast row value,
  double computed_points = 0;  // say, on the row alone; evaluations a run
  bool hoisted = false;        // computed in the kernel's own context instead
  bool readable = false;       // may be loaded
  bool cut = false;            // met beyond the bound on a kernel's size: only loaded
  std::vector<Inline> inlines;
};

struct Context {
  ValueId reduction = -1;    // -1: the kernel's own
  std::vector<AxisId> axes;  // bound by the reduction
  double points = 0;         // of its innermost body
};

struct UpdateMember {
  uint32_t state = 0;      // index into AllState
  ValueId old_value = -1;  // -1: the step does not read it
  ValueId new_value = 0;
};

// A sum that is added up in memory.
struct AddedSum {
  ValueId value = -1;
  uint32_t definition = 0;
  IndexMap operand;  // where the operand's element lies
};

// Another group that an update anchor brings up to date: a figure for each column.
struct SideUpdate {
  int32_t group = -1;
  std::vector<ValueId> roots;
};

struct Candidate {
  KernelKind kind = KernelKind::kLoop;
  std::vector<ValueId> roots;
  ValueId anchor = -1;
  int32_t group = -1;             // updates: index into CandidateSet::groups
  std::vector<SideUpdate> sides;  // kUpdateAnchor
  bool scatter = false;           // a loop over the rows that are added up, not over the root
  std::vector<AddedSum> added;    // kSums: the root and others that may be stored beside it
  std::set<ValueId> late;         // kSums: those of `beside` that only reports need
  std::vector<int64_t> extents;   // by axis: the root's axes, then those of reductions
  uint32_t root_axes = 0;
  std::vector<Context> contexts;
  std::vector<Entry> entries;
  std::vector<ValueId> tables;  // gathered from: read at rows that data says
  // What it can store besides its root; not of updates.
  std::vector<ValueId> beside;
  std::vector<ValueId> unmet;  // operands cut off by the bound on a kernel's size or by their maps
  int64_t position = 0;        // equals its index in CandidateSet::kernels
  uint32_t first_context = 0;  // global number of contexts[0]

  const Entry* Find(uint32_t context, ValueId value) const;
  const AddedSum* FindAdded(ValueId value) const;

 private:
  friend class Analyser;
  std::map<std::pair<uint32_t, ValueId>, uint32_t> index_;
};

struct UpdateGroup {
  std::vector<UpdateMember> members;
  bool in_place = true;  // false: new values are stored aside and copied at the end
};

struct CandidateSet {
  std::vector<Candidate> kernels;
  std::vector<UpdateGroup> groups;
  // By value: the kernels that can store it, by position.
  std::vector<std::vector<uint32_t>> storers;
  uint32_t contexts = 0;
  uint64_t pruned_entries = 0;  // cut by the bound on a kernel's size
  std::set<ValueId> missing;    // to be kept in memory, or some value can never be computed
  // Of the values that can be stored, how much was looked at before there was too much for
  // `max_rows`, from 0 to 1; nothing else is set then.
  std::optional<double> too_many_at;
};

struct CandidateOptions {
  bool fuse = true;          // false: every op is a kernel of its own
  size_t max_entries = 320;  // of one candidate (span.h)
  // What must be computed comes before what may be: for spans that do not hold all of it.
  bool needed_first = false;
  // Rows of the e-graph that the rules of the ruleset choose may make of the candidates.
  uint64_t max_rows = std::numeric_limits<uint64_t>::max();
  size_t max_passes = 8;
};

// `stored[v]`: the value may be kept in memory (the grouping and layout rules say which).
CandidateSet FindCandidates(const Step& step, const ValueTable& table,
                            const std::vector<bool>& stored, const CandidateOptions& options);

// The version of `value` that kernel `k` can load, -1 when none is earlier.
int32_t VersionBefore(const CandidateSet& set, ValueId value, uint32_t kernel);
// Its last version, -1 where no kernel stores it: it is given.
int64_t LastVersion(const CandidateSet& set, ValueId value);

// Whether the entry is loaded in several passes over one row, and the row is so short that it is
// near a core after the first (`RowBytes` of it), though the value as a whole is not.
bool IsNear(const ValueTable& table, const Candidate& kernel, const Entry& entry);
double RowBytes(const Candidate& kernel, const Entry& entry);

// A row-major iteration space and its identity map.
IndexMap IdentityMap(const tensor::Shape& shape);

}  // namespace l3c::l0::lower
