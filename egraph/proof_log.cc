#include "egraph/proof_log.h"

namespace l3c::egraph {

uint32_t ProofLog::Store(std::span<const uint32_t> values) {
  const auto begin = static_cast<uint32_t>(values_.size());
  values_.insert(values_.end(), values.begin(), values.end());
  return begin;
}

void ProofLog::Begin(Application application) {
  open_.push_back({static_cast<uint32_t>(applications_.size()), now_, reads_.size()});
  applications_.push_back(application);
}

void ProofLog::BeginRule(RuleId rule, std::span<const uint32_t> slots, uint32_t search_time) {
  const auto begin = static_cast<uint32_t>(slots_.size());
  slots_.insert(slots_.end(), slots.begin(), slots.end());
  Begin({Application::Kind::kRule, rule.index, begin, search_time});
}

void ProofLog::BeginStatement(std::shared_ptr<const Rule> statement) {
  Begin({Application::Kind::kStatement, static_cast<uint32_t>(statements_.size()),
         static_cast<uint32_t>(slots_.size()), now_});
  statements_.push_back(std::move(statement));
}

void ProofLog::BeginMerge(FunctionId f, std::span<const uint32_t> args, Value old_value,
                          Value new_value) {
  const auto begin = static_cast<uint32_t>(slots_.size());
  slots_.insert(slots_.end(), args.begin(), args.end());
  slots_.push_back(old_value.bits);
  slots_.push_back(new_value.bits);
  Begin({Application::Kind::kMerge, f.index, begin, now_});
}

void ProofLog::End() {
  const Open ended = open_.back();
  open_.pop_back();
  if (now_ != ended.records) return;
  const Application& application = applications_[ended.application];
  if (application.kind == Application::Kind::kStatement) statements_.pop_back();
  slots_.resize(application.slots);
  reads_.resize(ended.reads);
  applications_.pop_back();
}

uint32_t ProofLog::AddNode(FunctionId f, std::span<const uint32_t> args, Value class_id) {
  const auto node = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({f, Store(args), cause(), now_++});
  if (class_id.valid()) class_nodes_.push_back(node);
  return node;
}

void ProofLog::AddFact(FunctionId f, std::span<const uint32_t> args, Value value) {
  facts_.push_back({f, Store(args), cause(), now_++});
  values_.push_back(value.bits);
}

void ProofLog::AddUnion(Value a, Value b, bool joined) {
  if (!joined && (!options_.redundant || a == b)) return;
  equations_.push_back({class_nodes_[a.bits], class_nodes_[b.bits], cause(), kNone, now_++});
}

void ProofLog::AddJoin(uint32_t a, Value b) {
  equations_.push_back({a, class_nodes_[b.bits], cause(), kNone, now_++});
}

void ProofLog::AddRowUnion(FunctionId f, std::span<const uint32_t> args, Value a, Value b,
                           bool congruence, bool joined) {
  if (!joined && !options_.redundant) return;
  const uint32_t row = Store(std::span(&f.index, 1));
  Store(args);
  equations_.push_back({class_nodes_[a.bits], class_nodes_[b.bits],
                        congruence ? kCongruenceCause : cause(), row, now_++});
}

void ProofLog::AddRead(Value value) {
  if (!open_.empty()) reads_.push_back({open_.back().application, value});
}

size_t ProofLog::Bytes() const {
  return nodes_.capacity() * sizeof(Node) + facts_.capacity() * sizeof(Fact) +
         equations_.capacity() * sizeof(Equation) + applications_.capacity() * sizeof(Application) +
         reads_.capacity() * sizeof(Read) +
         (values_.capacity() + slots_.capacity() + class_nodes_.capacity()) * sizeof(uint32_t);
}

ProofLog::Mark ProofLog::mark() const {
  return {VectorMark(nodes_),       VectorMark(facts_),
          VectorMark(equations_),   VectorMark(applications_),
          VectorMark(statements_),  VectorMark(reads_),
          VectorMark(values_),      VectorMark(slots_),
          VectorMark(class_nodes_), now_};
}

void ProofLog::Rewind(const Mark& mark) {
  mark.nodes.CutBack(&nodes_);
  mark.facts.CutBack(&facts_);
  mark.equations.CutBack(&equations_);
  mark.applications.CutBack(&applications_);
  mark.statements.CutBack(&statements_);
  mark.reads.CutBack(&reads_);
  mark.values.CutBack(&values_);
  mark.slots.CutBack(&slots_);
  mark.classes.CutBack(&class_nodes_);
  now_ = mark.now;
}

}  // namespace l3c::egraph
