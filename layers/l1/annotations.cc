#include "layers/l1/annotations.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "layers/l1/tensor_body.h"

namespace l3c::l1 {

using tensor::Graph;
using tensor::NodeId;
using tensor::Op;

namespace {

class AnnotationReader {
 public:
  AnnotationReader(const l2::Module& module, const System& system, const std::string& folder,
                   search::NoCandidates& failure)
      : module_(module), system_(system), folder_(folder), failure_(failure) {}

  std::optional<Annotations> Read() {
    std::vector<const support::Hints*> all_hints = {&module_.spec.hints};
    for (const l2::Methods& methods : module_.methods) all_hints.push_back(&methods.hints);
    for (const support::Hints* hints : all_hints) {
      for (const auto& [where, list] : *hints) {
        for (const support::EscapeHatch& hatch : list) {
          if (hatch.layer == "l2") continue;
          if (hatch.layer == "l1" && hatch.directive == "on") {
            if (!PlaceOn(where, hatch)) return std::nullopt;
            continue;
          }
          const size_t layer = where.find(".infer.");
          if (hatch.layer == "l0" && hatch.directive == "kernel" && layer != std::string::npos) {
            all_.kernels.push_back({where.substr(layer + std::string_view(".infer.").size()), where,
                                    WithAbsolutePath(hatch, folder_)});
            continue;
          }
          const std::vector<std::string> known = {hatch.layer == "l1" ? "on" : "kernel"};
          if (const std::string meant = support::ClosestMatch(hatch.directive, known);
              !meant.empty() && hatch.directive != meant) {
            return None("'" + support::PrintEscapeHatch(hatch) + "' on " + where + ": " +
                            hatch.layer + " has no '" + hatch.directive + "'",
                        "did you mean '" + meant + "'?", hatch.span);
          }
          // Dropping it would break its promise.
          return None("'" + support::PrintEscapeHatch(hatch) + "' on " + where +
                          " asks for what this lowering cannot do",
                      "remove it, or write the placement as an l1 file", hatch.span);
        }
      }
    }
    return std::move(all_);
  }

 private:
  bool Fail(std::string reason, std::string hint, Span where) {
    failure_ = {std::move(reason), std::move(hint), where};
    return false;
  }
  std::optional<Annotations> None(std::string reason, std::string hint, Span where) {
    Fail(std::move(reason), std::move(hint), where);
    return std::nullopt;
  }

  bool PlaceOn(const std::string& where, const support::EscapeHatch& hatch) {
    const std::string what = "'" + support::PrintEscapeHatch(hatch) + "' on " + where;
    const bool data = module_.spec.FindData(where.substr(0, where.find('.'))) != nullptr;
    const NodeKind kind = data ? NodeKind::kStorage : NodeKind::kCompute;
    std::vector<std::string> names;
    for (const SystemNode& node : system_.nodes) {
      if (node.kind == kind) names.push_back(node.name);
    }
    if (std::find(names.begin(), names.end(), hatch.args) == names.end()) {
      std::string list;
      for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
      return Fail(what + ": the system has no " + (data ? "storage" : "compute") + " node '" +
                      hatch.args + "'",
                  list.empty() ? "describe one in the system file" : "it has " + list, hatch.span);
    }
    std::optional<Pin>& pin = data ? all_.data : all_.model;
    if (pin && pin->node != hatch.args) {
      return Fail(what + " disagrees with '" + pin->node + "' on " + pin->where,
                  data ? "one data declaration lies on one node"
                       : "the layers of a step are one tensor graph: name one node, or write the "
                         "placement as an l1 file",
                  hatch.span);
    }
    pin = Pin{hatch.args, where, hatch.span};
    return true;
  }

  const l2::Module& module_;
  const System& system_;
  const std::string& folder_;
  search::NoCandidates& failure_;
  Annotations all_;
};

}  // namespace

std::optional<Annotations> ReadAnnotations(const l2::Module& module, const System& system,
                                           const std::string& folder,
                                           search::NoCandidates& failure) {
  return AnnotationReader(module, system, folder, failure).Read();
}

support::EscapeHatch OfLayer(const Graph& graph, const LayerKernel& kernel) {
  if (kernel.hatch.args.find(", of: [") != std::string::npos) return kernel.hatch;
  std::vector<bool> inside(graph.size());
  std::vector<bool> outside(graph.size());
  inside[*graph.Find(kernel.layer)] = true;
  for (NodeId id = static_cast<NodeId>(graph.size()); id-- > 0;) {
    if (!inside[id]) continue;
    for (NodeId input : graph.node(id).inputs) {
      const tensor::Node& node = graph.node(input);
      if (node.op == Op::kConst) continue;
      const bool own =
          node.op != Op::kInput && (node.name.empty() || node.name.starts_with(kernel.layer + "_"));
      (own ? inside : outside)[input] = true;
    }
  }
  std::string names;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (outside[id]) names += (names.empty() ? "" : ", ") + graph.node(id).name;
  }
  support::EscapeHatch hatch = kernel.hatch;
  hatch.args += ", of: [" + names + "]";
  return hatch;
}

}  // namespace l3c::l1
