// The names of a module, indexed: a file of megabytes may hold a hundred thousand of them, so
// nothing that looks up every reference may search the declarations one by one.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/l3/ir.h"

namespace l3c::l3 {

// Holds pointers into the module, which must not change meanwhile.
class Symbols {
 public:
  explicit Symbols(const Module& module);

  const Data* FindData(std::string_view name) const { return Find(data_, name); }
  const Model* FindModel(std::string_view name) const { return Find(models_, name); }
  const Loss* FindLoss(std::string_view name) const { return Find(losses_, name); }
  const Field* FindField(std::string_view data, std::string_view field) const;
  const Term* FindTerm(std::string_view loss, std::string_view term) const;
  // The domain of a field or of a model's output; nothing for other references.
  const Domain* DomainOf(const Ref& ref) const;
  // Where the data, model or loss of this name is declared; unknown if there is none.
  Span SpanOf(std::string_view name) const;
  // Names that a reference may begin with.
  std::vector<std::string> Owners() const;

 private:
  template <class T>
  using Map = std::map<std::string_view, const T*>;
  using Member = std::pair<std::string_view, std::string_view>;

  template <class T>
  static const T* Find(const Map<T>& map, std::string_view name) {
    const auto found = map.find(name);
    return found == map.end() ? nullptr : found->second;
  }

  Map<Data> data_;
  Map<Model> models_;
  Map<Loss> losses_;
  std::map<Member, const Field*> fields_;
  std::map<Member, const Term*> terms_;
};

}  // namespace l3c::l3
