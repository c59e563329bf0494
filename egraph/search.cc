#include "egraph/search.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace l3c::egraph {
namespace {

// Rows of a chunk; a multiple of what is small against the work of handing it out.
constexpr uint32_t kChunkRows = 1024;
// With fewer rows to begin with, other threads would be woken for nothing.
constexpr uint64_t kMinParallelRows = 4096;

// Whether a plan made for `planned` rows still serves. Where there is much to search, planning
// again costs nothing beside it.
bool StillServes(uint64_t planned, uint64_t rows) {
  constexpr uint64_t kSmall = 256;
  if (rows <= kSmall) return planned <= 2 * rows + 16 && rows <= 2 * planned + 16;
  return planned <= rows + rows / 8 && rows <= planned + planned / 8;
}

bool Scans(const JoinForest::Node& node) {
  return node.kind == JoinForest::Node::Kind::kScan ||
         node.kind == JoinForest::Node::Kind::kScanBack;
}

}  // namespace

SearchCacheHolder::SearchCacheHolder() = default;
SearchCacheHolder::~SearchCacheHolder() = default;
SearchCacheHolder::SearchCacheHolder(const SearchCacheHolder& other) {
  Restore(other.Save());
  if (cache_ != nullptr) cache_->Unshare();
}
SearchCacheHolder& SearchCacheHolder::operator=(const SearchCacheHolder& other) {
  if (this != &other) *this = SearchCacheHolder(other);
  return *this;
}
SearchCacheHolder::SearchCacheHolder(SearchCacheHolder&&) noexcept = default;
SearchCacheHolder& SearchCacheHolder::operator=(SearchCacheHolder&&) noexcept = default;

void SearchCacheHolder::Drop() { cache_.reset(); }

SearchCache& SearchCacheHolder::Get() {
  if (cache_ == nullptr) cache_ = std::make_unique<SearchCache>();
  return *cache_;
}

SearchCacheHolder SearchCacheHolder::Save() const {
  SearchCacheHolder saved;
  if (cache_ != nullptr) saved.cache_ = cache_->Save();
  return saved;
}

void SearchCacheHolder::Restore(SearchCacheHolder saved) {
  std::swap(cache_, saved.cache_);
  SearchCache none;
  if (cache_ != nullptr) cache_->Inherit(saved.cache_ == nullptr ? none : *saved.cache_);
}

void SearchCacheHolder::ForgetSaved() {
  if (cache_ != nullptr) cache_->ForgetSaved();
}

size_t SearchCacheHolder::Bytes() const { return cache_ == nullptr ? 0 : cache_->Bytes(); }

size_t SearchCache::Bytes() const {
  return sizeof(SearchCache) + indexes_.Bytes() + plan_bytes_ + forest_.Bytes() +
         plans_.capacity() * sizeof(plans_[0]) + buffers_.capacity() * sizeof(MatchBuffer);
}

std::unique_ptr<SearchCache> SearchCache::Save() const {
  auto saved = std::make_unique<SearchCache>();
  saved->indexes_ = indexes_;
  saved->plans_.reserve(plans_.capacity());
  saved->plans_ = plans_;
  saved->plan_bytes_ = plan_bytes_;
  saved->saved_buffers_ = VectorMark(buffers_);
  return saved;
}

void SearchCache::Unshare() {
  indexes_.Unshare();
  for (std::shared_ptr<RulePlans>& plans : plans_) {
    if (plans != nullptr) plans = std::make_shared<RulePlans>(*plans);
  }
}

void SearchCache::Inherit(SearchCache& other) {
  pool_ = std::move(other.pool_);
  // The matches of `other` stand in its memory. Of the buffers only their number counts.
  buffers_.reserve(saved_buffers_.capacity);
  buffers_.resize(saved_buffers_.size);
}

void RuleSearch::ClearBuffers() {
  for (MatchBuffer& buffer : cache_.buffers_) buffer.Clear();
  cache_.memory_.Clear();
}

void RuleSearch::Begin() {
  ClearBuffers();
  cache_.forest_.Clear();
  added_.clear();
  leaves_.clear();
  chunks_.clear();
  first_chunk_.clear();
}

const SearchCache::RulePlans& RuleSearch::PlansOf(RuleId id) {
  if (cache_.plans_.size() <= id.index) cache_.plans_.resize(graph_.rule_count());
  std::shared_ptr<SearchCache::RulePlans>& known = cache_.plans_[id.index];
  if (known != nullptr && known->rule == graph_.rules_[id.index]) return *known;
  if (known != nullptr) cache_.plan_bytes_ -= known->Bytes();
  known = std::make_shared<SearchCache::RulePlans>();
  SearchCache::RulePlans& plans = *known;
  plans.rule = graph_.rules_[id.index];
  const Rule& rule = *plans.rule;
  plans.parts.resize(std::max<size_t>(1, rule.query.atoms.size()));
  std::vector<uint8_t> used(rule.query.slot_sorts.size(), 0);
  const auto use = [&](const Operand& operand) {
    if (!operand.is_constant && operand.bits < used.size()) used[operand.bits] = 1;
  };
  for (const Action& action : rule.actions) {
    for (const Operand& operand : action.args) use(operand);
    if (action.kind == Action::Kind::kSet || action.kind == Action::Kind::kAddAs) {
      use(action.value);
    }
  }
  plans.kept.alike = std::find(used.begin(), used.end(), 1) == used.end();
  if (graph_.proof_log() != nullptr) used.assign(used.size(), 1);
  for (uint32_t slot = 0; slot < used.size(); ++slot) {
    if (used[slot]) plans.kept.slots.push_back(slot);
  }
  cache_.plan_bytes_ += plans.Bytes();
  return plans;
}

size_t SearchCache::RulePlans::Bytes() const {
  size_t bytes = sizeof(RulePlans) + kept.slots.size() * sizeof(uint32_t);
  for (const Part& part : parts) {
    bytes += sizeof(Part) + part.rows.size() * sizeof(uint32_t) +
             part.plan.steps.size() * sizeof(JoinPlan::Step) +
             part.plan.keys.size() * sizeof(Operand) +
             part.plan.checks.size() * sizeof(JoinPlan::Check);
  }
  return bytes;
}

// Plans for the numbers of rows in rows_.
void RuleSearch::MakePlan(RuleId id, size_t delta_atom) {
  std::shared_ptr<SearchCache::RulePlans>& plans = cache_.plans_[id.index];
  if (plans.use_count() > 1) plans = std::make_shared<SearchCache::RulePlans>(*plans);
  cache_.plan_bytes_ -= plans->Bytes();
  SearchCache::Part& part = plans->parts[delta_atom];
  part.planned = true;
  part.rows.clear();
  for (const JoinForest::Rows& rows : rows_) part.rows.push_back(rows.to - rows.from);
  part.plan = planner_.Plan(plans->rule->query, part.rows, delta_atom);
  cache_.plan_bytes_ += plans->Bytes();
}

bool RuleSearch::Add(RuleId id, uint64_t seen, uint64_t stop_at) {
  const Query& query = graph_.rule(id).query;
  bool any_new = query.atoms.empty() && seen == 0;
  old_rows_.clear();
  row_counts_.clear();
  for (const Atom& atom : query.atoms) {
    const Table& table = graph_.table(atom.function);
    old_rows_.push_back(seen == 0 ? 0 : table.RowsAt(seen));
    row_counts_.push_back(table.row_count());
    any_new |= old_rows_.back() < row_counts_.back();
  }
  if (!any_new) return false;
  const size_t parts = PlansOf(id).parts.size();
  added_.push_back({leaves_.size(), 0});
  for (size_t i = 0; i < parts; ++i) {
    AddPart(id, i, stop_at);
    // Without old rows the atoms before the next one match nothing.
    if (query.atoms.empty() || old_rows_[i] == 0) break;
  }
  return true;
}

void RuleSearch::AddPart(RuleId id, size_t delta_atom, uint64_t stop_at) {
  const Query& query = graph_.rule(id).query;
  rows_.clear();
  for (size_t i = 0; i < query.atoms.size(); ++i) {
    const RowRange range = RangeOf(i, delta_atom);
    const JoinForest::Rows rows{range == RowRange::kNew ? old_rows_[i] : 0,
                                range == RowRange::kOld ? old_rows_[i] : row_counts_[i]};
    if (rows.from >= rows.to) return;
    rows_.push_back(rows);
  }
  const SearchCache::Part& known = PlansOf(id).parts[delta_atom];
  bool serves = known.planned;
  for (size_t i = 0; serves && i < rows_.size(); ++i) {
    serves = StillServes(known.rows[i], rows_[i].to - rows_[i].from);
  }
  if (!serves) MakePlan(id, delta_atom);
  const SearchCache::RulePlans& plans = PlansOf(id);
  leaves_.push_back(cache_.forest_.Add(graph_, cache_.indexes_, query, plans.parts[delta_atom].plan,
                                       rows_, plans.kept.slots, stop_at));
  ++added_.back().leaf_count;
}

void RuleSearch::MakeChunks() {
  using Kind = JoinForest::Node::Kind;
  size_t buffers = 0;
  const std::vector<JoinForest::Tree>& trees = cache_.forest_.trees();
  for (uint32_t t = 0; t < trees.size(); ++t) {
    first_chunk_.push_back(chunks_.size());
    const JoinForest::Node& root = cache_.forest_.node(trees[t].root);
    const uint32_t rows = root.to - root.from;
    const uint32_t count = Scans(root) ? (rows - 1) / kChunkRows + 1 : 1;
    for (uint32_t c = 0; c < count; ++c) {
      Chunk chunk{t, root.from, root.to, buffers};
      if (count > 1) {
        const uint32_t begin = c * kChunkRows;
        const uint32_t end = std::min(rows, begin + kChunkRows);
        chunk.from = root.kind == Kind::kScan ? root.from + begin : root.to - end;
        chunk.to = root.kind == Kind::kScan ? root.from + end : root.to - begin;
      }
      chunks_.push_back(chunk);
      buffers += trees[t].leaf_count;
    }
  }
  first_chunk_.push_back(chunks_.size());
  if (cache_.buffers_.size() < buffers) cache_.buffers_.resize(buffers);
}

bool RuleSearch::RunChunk(JoinRun& run, const Chunk& chunk) {
  const JoinForest::Tree& tree = cache_.forest_.trees()[chunk.tree];
  return run.Run(tree, chunk.from, chunk.to,
                 std::span(cache_.buffers_).subspan(chunk.first_buffer, tree.leaf_count));
}

SearchMeter::Stop RuleSearch::RunInOrder(bool interning_only, SearchMeter& meter) {
  JoinRun run(graph_, cache_.forest_, meter, cache_.memory_);
  bool going = true;
  for (const bool interning : {false, true}) {
    if (interning_only && !interning) continue;
    for (size_t c = 0; going && c < chunks_.size(); ++c) {
      if (cache_.forest_.trees()[chunks_[c].tree].interns != interning) continue;
      going = RunChunk(run, chunks_[c]);
    }
  }
  AddWork(run);
  work_ = meter.work();
  return meter.stopped();
}

void RuleSearch::AddWork(const JoinRun& run) {
  for (size_t n = 0; n < node_work_.size(); ++n) node_work_[n] += run.node_work()[n];
}

void RuleSearch::CountLeaves() {
  node_leaves_.assign(cache_.forest_.node_count(), 0);
  first_below_.resize(cache_.forest_.node_count());
  for (uint32_t leaf : leaves_) {
    for (uint32_t n = cache_.forest_.leaf(leaf).node; n != JoinForest::kNone;
         n = cache_.forest_.node(n).parent) {
      if (node_leaves_[n]++ == 0) first_below_[n] = leaf;
    }
  }
}

uint64_t RuleSearch::Work(size_t i) const {
  uint64_t work = 0;
  const Added& added = added_[i];
  for (size_t l = 0; l < added.leaf_count; ++l) {
    const uint32_t leaf = leaves_[added.first_leaf + l];
    for (uint32_t n = cache_.forest_.leaf(leaf).node; n != JoinForest::kNone;
         n = cache_.forest_.node(n).parent) {
      work += node_work_[n] / node_leaves_[n];
      if (first_below_[n] == leaf) work += node_work_[n] % node_leaves_[n];
    }
  }
  return work;
}

WorkerPool* RuleSearch::Pool(uint32_t threads) {
  if (threads <= 1) return nullptr;
  if (cache_.pool_ == nullptr || cache_.pool_->threads() != threads) {
    cache_.pool_ = std::make_unique<WorkerPool>(threads);
  }
  return cache_.pool_.get();
}

SearchMeter::Stop RuleSearch::Run(const Limits& limits, uint32_t threads) {
  MakeChunks();
  node_work_.assign(cache_.forest_.node_count(), 0);
  CountLeaves();
  uint64_t parallel_rows = 0;
  for (const JoinForest::Tree& tree : cache_.forest_.trees()) {
    const JoinForest::Node& root = cache_.forest_.node(tree.root);
    if (!tree.interns && Scans(root)) parallel_rows += root.to - root.from;
  }
  if (threads > 1 && parallel_rows >= kMinParallelRows) {
    SearchMeter meter(limits);
    std::atomic<size_t> next = 0;
    std::mutex mutex;
    Pool(threads)->Run([&](uint32_t) {
      JoinRun run(graph_, cache_.forest_, meter, cache_.memory_);
      for (size_t c = next++; c < chunks_.size(); c = next++) {
        if (cache_.forest_.trees()[chunks_[c].tree].interns) continue;
        if (!RunChunk(run, chunks_[c])) break;
      }
      const std::lock_guard lock(mutex);
      AddWork(run);
    });
    work_ = meter.work();
    if (meter.stopped() == SearchMeter::Stop::kTime) return meter.stopped();
    if (meter.stopped() == SearchMeter::Stop::kNone) {
      return RunInOrder(/*interning_only=*/true, meter);
    }
    ClearBuffers();
    node_work_.assign(node_work_.size(), 0);
  }
  SearchMeter meter(limits);
  return RunInOrder(/*interning_only=*/false, meter);
}

uint64_t RuleSearch::Count(size_t i) const {
  uint64_t count = 0;
  const Added& added = added_[i];
  for (size_t l = 0; l < added.leaf_count; ++l) {
    const uint32_t leaf = leaves_[added.first_leaf + l];
    const uint32_t tree = cache_.forest_.tree_of(leaf);
    for (size_t c = first_chunk_[tree]; c < first_chunk_[tree + 1]; ++c) {
      count += cache_.buffers_[chunks_[c].first_buffer + cache_.forest_.leaf(leaf).number].count();
    }
  }
  return count;
}

uint64_t RuleSearch::MatchBytes() const {
  uint64_t bytes = 0;
  for (const MatchBuffer& buffer : cache_.buffers_) bytes += buffer.bytes();
  return bytes;
}

std::optional<bool> RuleSearch::HasMatch(const Query& query, bool subsumed_too,
                                         const Limits& limits, SearchMeter::Stop* stop) {
  Begin();
  work_ = 0;
  rows_.clear();
  row_counts_.clear();
  for (const Atom& atom : query.atoms) {
    const uint32_t rows = graph_.table(atom.function).row_count();
    if (rows == 0) return false;
    rows_.push_back({0, rows});
    row_counts_.push_back(rows);
  }
  const JoinPlan plan = planner_.Plan(query, row_counts_, 0);
  JoinForest& forest = cache_.forest_;
  forest.Add(graph_, cache_.indexes_, query, plan, rows_, {}, 1);
  MatchBuffer found;
  SearchMeter meter(limits);
  const JoinForest::Tree& tree = forest.trees()[0];
  const JoinForest::Node& root = forest.node(tree.root);
  JoinRun(graph_, forest, meter, cache_.memory_, subsumed_too)
      .Run(tree, root.from, root.to, std::span(&found, 1));
  work_ = meter.work();
  *stop = meter.stopped();
  forest.Clear();
  if (found.count() == 0 && *stop != SearchMeter::Stop::kNone) return std::nullopt;
  return found.count() != 0;
}

}  // namespace l3c::egraph
