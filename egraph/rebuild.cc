// Restoring congruence: rows that name a class that is none any more are put back with the one it
// is part of, where equal rows meet and their outputs merge, which may unite more classes.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "egraph/bulk_insert.h"
#include "egraph/egraph.h"
#include "egraph/worker_pool.h"

namespace l3c::egraph {
namespace {

// A rebuilt table is compacted when more than half of its rows are dead and it is worth the pass.
constexpr uint32_t kMinDeadToCompact = 256;

// Rounds of a rebuild that scan all rows before lookups are considered, and how many rows a scan
// passes in the time of one lookup.
constexpr uint32_t kScannedRounds = 10;
constexpr size_t kScanPerLookup = 32;

}  // namespace

struct EGraph::RebuildRoom {
  WorkerPool* pool;
  BulkInsert bulk;
  std::vector<uint32_t> stale;  // rows
};

// Puts a row with a stale class back with canonical ones, where it may meet an equal row: their
// outputs merge.
void EGraph::RebuildRow(FunctionId id, uint32_t row) {
  const Function& f = functions_[id.index];
  Table& table = tables_[id.index];
  const uint32_t* cells = table.Cells(row);
  uint32_t args[kMaxArity];
  for (uint32_t i = 0; i < table.arguments(); ++i) {
    args[i] = Canonical(f.inputs[i], Value{cells[i]}).bits;
  }
  const Value output = Canonical(f.output, Value{cells[table.arguments()]});
  const RuleId rule = table.Provenance(row);
  const bool subsumed = table.IsSubsumed(row);
  ++version_;
  const auto [other, appended] = table.Replace(row, args, output.bits);
  if (appended) return;
  --live_rows_;
  if (subsumed) table.MarkSubsumed(other);
  MergeIntoRow(id, other, output, f.kind == FunctionKind::kConstructor ? kCongruence : rule);
}

// The first row from `row` on, before `end`, that names a class which is none any more.
uint32_t EGraph::NextStale(const RebuildPlan& plan, const Table& table, uint32_t row,
                           uint32_t end) const {
  const auto is_root = [this](uint32_t id) { return union_find_.IsRoot(id); };
  // The usual shapes: every cell of the row is a class.
  if (plan.first_columns == 2) {
    for (; row < end; ++row) {
      const uint32_t* cells = table.Cells(row);
      if (!(is_root(cells[0]) & is_root(cells[1])) && table.IsLive(row)) return row;
    }
  } else if (plan.first_columns == 3) {
    for (; row < end; ++row) {
      const uint32_t* cells = table.Cells(row);
      if (!(is_root(cells[0]) & is_root(cells[1]) & is_root(cells[2])) && table.IsLive(row)) {
        return row;
      }
    }
  } else {
    for (; row < end; ++row) {
      const uint32_t* cells = table.Cells(row);
      bool stale = false;
      for (const uint32_t c : plan.classes) stale |= !is_root(cells[c]);
      for (size_t k = 0; k < plan.containers.size() && !stale; ++k) {
        const auto [c, sort] = plan.containers[k];
        stale = table.IsLive(row) && Canonical(sort, Value{cells[c]}) != Value{cells[c]};
      }
      if (stale && table.IsLive(row)) return row;
    }
  }
  return end;
}

EGraph::RebuildPlan EGraph::PlanRebuild(FunctionId id) const {
  const Function& f = functions_[id.index];
  RebuildPlan plan;
  for (uint32_t i = 0; i <= f.inputs.size(); ++i) {
    const SortId sort = i < f.inputs.size() ? f.inputs[i] : f.output;
    if (sorts_[sort.index].is_equality) {
      plan.classes.push_back(i);
      if (i < f.inputs.size()) plan.arguments.push_back(i);
    }
    if (sorts_[sort.index].moves) plan.containers.emplace_back(i, sort);
  }
  if (plan.containers.empty() && plan.classes.size() == f.inputs.size() + 1) {
    plan.first_columns = static_cast<uint32_t>(plan.classes.size());
  }
  // Merges of values may do anything; those of constructors and relations unite two classes at
  // most.
  plan.in_blocks = plan.containers.empty() && f.kind != FunctionKind::kFunction;
  return plan;
}

void EGraph::RebuildTable(FunctionId id, std::span<const uint32_t> dirty, RebuildRoom& room) {
  Table& table = tables_[id.index];
  const RebuildPlan plan = PlanRebuild(id);
  // Which containers hold a class is not indexed: their tables are always scanned.
  if (!dirty.empty() && plan.containers.empty()) {
    for (const uint32_t c : plan.classes) {
      const ColumnIndex& index = table.Index(c);
      for (uint32_t id_of_class : dirty) {
        for (uint32_t row = table.Newest(index, id_of_class); row != ColumnIndex::kEnd;
             row = index.Next(row)) {
          if (table.IsLive(row)) RebuildRow(id, row);
          if (failure_) return;
        }
      }
    }
    return;
  }
  if (plan.classes.empty() && plan.containers.empty()) return;
  const uint32_t rows = table.row_count();
  if (plan.in_blocks) return RebuildInBlocks(id, plan, rows, room);
  for (uint32_t row = 0; (row = NextStale(plan, table, row, rows)) != rows; ++row) {
    RebuildRow(id, row);
    if (failure_) return;
  }
}

uint32_t EGraph::StaleRows(const RebuildPlan& plan, const Table& table, uint32_t from, uint32_t to,
                           uint32_t* stale) const {
  uint32_t count = 0;
  for (uint32_t row = from; (row = NextStale(plan, table, row, to)) != to; ++row) {
    stale[count++] = row;
  }
  return count;
}

// The stale rows before `rows`, block by block of rows: those of a block are taken out together and
// put back together, and then the classes of those that met an equal row are united.
void EGraph::RebuildInBlocks(FunctionId id, const RebuildPlan& plan, uint32_t rows,
                             RebuildRoom& room) {
  constexpr uint32_t kScan = 1024;  // rows that a thread looks at at a time
  constexpr uint32_t kScans = 32;   // of a block
  Table& table = tables_[id.index];
  const uint32_t arguments = table.arguments();
  const SortId output_sort = functions_[id.index].output;
  auto& [pool, bulk, stale] = room;
  if (stale.size() < std::min(rows, kScan * kScans)) stale.resize(std::min(rows, kScan * kScans));
  uint32_t counts[kScans];
  // So many end a block before that: what it takes is little beside the table.
  const uint32_t most_stale = std::min(8192u, rows / 16);
  for (uint32_t from = 0; from < rows;) {
    const uint32_t scans = std::min(kScans, (rows - from + kScan - 1) / kScan);
    const auto scan = [&](uint32_t s) {
      const uint32_t first = from + s * kScan;
      counts[s] = StaleRows(plan, table, first, std::min(rows, first + kScan), &stale[s * kScan]);
    };
    if (pool != nullptr && scans > 1) {
      pool->For(scans, scan);
    } else {
      for (uint32_t s = 0; s < scans; ++s) scan(s);
    }
    BulkInsert::Job job;
    job.table = &table;
    uint32_t scanned = 0;
    for (; scanned < scans && job.count <= most_stale; ++scanned) {
      std::copy_n(&stale[scanned * kScan], counts[scanned], &stale[job.count]);
      job.count += counts[scanned];
    }
    from += scanned * kScan;
    if (job.count == 0) continue;
    job.replaced = stale.data();
    bulk.Begin(job, pool);
    bulk.Insert(
        [&](uint32_t begin, uint32_t end) {
          for (uint32_t m = begin; m < end; ++m) {
            const uint32_t* cells = table.Cells(stale[m]);
            uint32_t* args = bulk.Args(m);
            std::copy_n(cells, arguments, args);
            for (const uint32_t c : plan.arguments) args[c] = union_find_.Find(cells[c]);
            bulk.Output(m) = Canonical(output_sort, Value{cells[arguments]}).bits;
          }
        },
        [](uint32_t, uint32_t) {});
    version_ += job.count;
    live_rows_ -= job.count - bulk.new_rows();
    for (uint32_t m = 0; m < job.count; ++m) {
      if (bulk.IsNew(m)) continue;
      if (table.IsSubsumed(stale[m])) table.MarkSubsumed(bulk.Row(m));
      MergeIntoRow(id, bulk.Row(m), Value{bulk.Output(m)}, kCongruence);
    }
  }
}

bool EGraph::Rebuild(WorkerPool* pool) {
  // A scan of everything finds most of what a step has made stale. What a long cascade of
  // congruences leaves for later rounds is little, and is looked up instead.
  std::vector<uint32_t> dirty;
  // What finds overwrite is written down while a level is open.
  RebuildRoom room{levels_.empty() ? pool : nullptr, {}, {}};
  for (uint32_t round = 0; NeedsRebuild() && !failure_; ++round) {
    for (const UnionRecord& u : std::exchange(deferred_unions_, {})) UnionNow(u.a, u.b, u.rule);
    dirty.swap(dirty_classes_);
    dirty_classes_.clear();
    const bool scan = round < kScannedRounds || dirty.size() * kScanPerLookup > live_rows_;
    const std::span<const uint32_t> looked_up = scan ? std::span<const uint32_t>() : dirty;
    for (uint32_t f = 0; f < tables_.size() && !failure_; ++f) {
      if (tables_[f].live_count() != 0) RebuildTable(FunctionId{f}, looked_up, room);
    }
    // Rows that have not been looked at still name them: whoever clears the failure finds them.
    if (failure_) dirty_classes_.insert(dirty_classes_.end(), dirty.begin(), dirty.end());
  }
  for (Table& table : tables_) {
    const uint32_t dead = table.row_count() - table.live_count();
    if (dead >= kMinDeadToCompact && dead > table.live_count()) table.Compact();
  }
  return !failure_;
}

}  // namespace l3c::egraph
