#include "layers/l3/domain.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "layers/l3/forms.h"
#include "layers/support/printer.h"
#include "layers/support/units.h"

namespace l3c::l3 {
namespace {

using support::Kind;
using support::ParserBase;

const std::vector<std::string> kDomainWords = {"tensor", "sequence", "table", "dist", "scalar"};

std::optional<tensor::DType> ExpectDType(ParserBase& parser) {
  const auto name = parser.ExpectName("an element type such as f32");
  if (!name) return std::nullopt;
  const auto dtype = tensor::ParseDType(name->text);
  if (!dtype) {
    std::vector<std::string> known;
    using tensor::DType;
    for (DType type : {DType::kBool, DType::kU8, DType::kI32, DType::kI64, DType::kU32, DType::kU64,
                       DType::kF32, DType::kF64}) {
      known.emplace_back(tensor::DTypeName(type));
    }
    parser.ErrorUnknown("element type", *name, known);
  }
  return dtype;
}

std::optional<Domain> ParseTensor(ParserBase& parser) {
  Domain domain;
  domain.kind = Domain::Kind::kTensor;
  if (!parser.Expect("(")) return std::nullopt;
  const auto dtype = ExpectDType(parser);
  if (!dtype || !parser.Expect(",")) return std::nullopt;
  domain.dtype = *dtype;
  const bool shape = parser.ParseList("[", "]", [&] {
    const auto extent = parser.ExpectInteger("an extent", kAnyInteger);
    if (extent) domain.shape.push_back(*extent);
    return extent.has_value();
  });
  if (!shape || !parser.Expect(")")) return std::nullopt;
  return domain;
}

std::optional<Domain> ParseSequence(ParserBase& parser) {
  Domain domain;
  domain.kind = Domain::Kind::kSequence;
  if (!parser.Expect("(")) return std::nullopt;
  auto element = ParseDomain(parser);
  if (!element || !parser.Expect(",")) return std::nullopt;
  parser.AcceptLabel();  // max_len:
  const auto bound = parser.ExpectInteger("the greatest length", kAnyInteger);
  if (!bound || !parser.Expect(")")) return std::nullopt;
  domain.parts.push_back(*std::move(element));
  domain.size = *bound;
  return domain;
}

std::optional<Domain> ParseTable(ParserBase& parser) {
  Domain domain;
  domain.kind = Domain::Kind::kTable;
  const bool columns = parser.ParseList("(", ")", [&] {
    const auto name = parser.ExpectName("the name of a column");
    if (!name || !parser.Expect(":")) return false;
    auto part = ParseDomain(parser);
    if (!part) return false;
    domain.columns.push_back(name->text);
    domain.parts.push_back(*std::move(part));
    return true;
  });
  if (!columns) return std::nullopt;
  return domain;
}

bool CheckDomain(const Domain& domain, const std::string& what, int depth, support::Span span,
                 support::Diagnostics& diagnostics) {
  const auto refuse = [&](Kind kind, const std::string& message) {
    diagnostics.Error(kind, span, what + " " + message);
    return false;
  };
  const auto bound = [&](const std::string& message) {
    return refuse(Kind::kResourceBound, message);
  };
  if (depth > kMaxDomainDepth) {
    return bound("nests domains deeper than " + std::to_string(kMaxDomainDepth) + " levels");
  }
  switch (domain.kind) {
    case Domain::Kind::kTensor: {
      if (domain.shape.size() > static_cast<size_t>(tensor::kMaxRank)) {
        return bound("has " + std::to_string(domain.shape.size()) + " axes; a tensor has at most " +
                     std::to_string(tensor::kMaxRank));
      }
      for (size_t axis = 0; axis < domain.shape.size(); ++axis) {
        if (domain.shape[axis] < 1) {
          return bound("has extent " + std::to_string(domain.shape[axis]) + " on axis " +
                       std::to_string(axis) + "; extents are at least 1");
        }
      }
      break;
    }
    case Domain::Kind::kSequence:
      if (domain.size < 1) {
        return bound("bounds a sequence at " + std::to_string(domain.size) +
                     " elements; the bound is at least 1");
      }
      if (!CheckDomain(domain.parts[0], what, depth + 1, span, diagnostics)) return false;
      break;
    case Domain::Kind::kTable: {
      if (domain.columns.empty()) return bound("is a table without columns");
      if (domain.columns.size() > kMaxColumns) {
        return bound("is a table of " + std::to_string(domain.columns.size()) +
                     " columns; the bound is " + std::to_string(kMaxColumns));
      }
      std::vector<std::string> sorted = domain.columns;
      std::sort(sorted.begin(), sorted.end());
      const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
      if (twice != sorted.end()) {
        return refuse(Kind::kSafety, "has two columns named '" + *twice + "'");
      }
      for (const Domain& part : domain.parts) {
        if (!CheckDomain(part, what, depth + 1, span, diagnostics)) return false;
      }
      break;
    }
    case Domain::Kind::kDist:
      if (domain.size < 1) {
        return bound("is a distribution over " + std::to_string(domain.size) +
                     " classes; there is at least 1");
      }
      break;
    case Domain::Kind::kScalar:
      break;
  }
  return true;
}

// Elements of the domain, or more than kMaxDomainElements if there are more.
int64_t CountElements(const Domain& domain) {
  constexpr int64_t kTooMany = kMaxDomainElements + 1;
  const auto times = [kTooMany](int64_t a, int64_t b) {
    return a != 0 && b > kTooMany / a ? kTooMany : std::min(kTooMany, a * b);
  };
  switch (domain.kind) {
    case Domain::Kind::kTensor: {
      int64_t count = 1;
      for (int64_t extent : domain.shape) count = times(count, extent);
      return count;
    }
    case Domain::Kind::kSequence:
      return times(CountElements(domain.parts[0]), domain.size);
    case Domain::Kind::kTable: {
      int64_t count = 0;
      for (const Domain& part : domain.parts) {
        count = std::min(kTooMany, count + CountElements(part));
      }
      return count;
    }
    case Domain::Kind::kDist:
      return std::min(kTooMany, domain.size);
    case Domain::Kind::kScalar:
      return 1;
  }
  return 0;
}

}  // namespace

Domain Domain::Tensor(tensor::DType dtype, tensor::Shape shape) {
  Domain domain;
  domain.kind = Kind::kTensor;
  domain.dtype = dtype;
  domain.shape = std::move(shape);
  return domain;
}

Domain Domain::Sequence(Domain element, int64_t max_len) {
  Domain domain;
  domain.kind = Kind::kSequence;
  domain.size = max_len;
  domain.parts.push_back(std::move(element));
  return domain;
}

Domain Domain::Table(std::vector<std::string> columns, std::vector<Domain> parts) {
  Domain domain;
  domain.kind = Kind::kTable;
  domain.columns = std::move(columns);
  domain.parts = std::move(parts);
  return domain;
}

Domain Domain::Dist(int64_t classes) {
  Domain domain;
  domain.kind = Kind::kDist;
  domain.size = classes;
  return domain;
}

Domain Domain::Scalar(tensor::DType dtype) {
  Domain domain;
  domain.dtype = dtype;
  return domain;
}

tensor::Shape ExampleShape(const Domain& domain) {
  switch (domain.kind) {
    case Domain::Kind::kTensor:
      return domain.shape;
    case Domain::Kind::kSequence: {
      tensor::Shape shape = ExampleShape(domain.parts[0]);
      shape.insert(shape.begin(), domain.size);
      return shape;
    }
    case Domain::Kind::kTable:
      return {NumElements(domain)};
    case Domain::Kind::kDist:
      return {domain.size};
    case Domain::Kind::kScalar:
      return {};
  }
  return {};
}

tensor::DType ExampleDType(const Domain& domain) {
  switch (domain.kind) {
    case Domain::Kind::kTensor:
    case Domain::Kind::kScalar:
      return domain.dtype;
    case Domain::Kind::kSequence:
      return ExampleDType(domain.parts[0]);
    case Domain::Kind::kTable: {
      const tensor::DType first = ExampleDType(domain.parts[0]);
      const bool agree =
          std::all_of(domain.parts.begin(), domain.parts.end(),
                      [&](const Domain& part) { return ExampleDType(part) == first; });
      return agree ? first : tensor::DType::kF32;
    }
    case Domain::Kind::kDist:
      return tensor::DType::kF32;
  }
  return tensor::DType::kF32;
}

int64_t NumElements(const Domain& domain) { return CountElements(domain); }

const std::vector<std::string>& DomainForms() { return kDomainWords; }

std::optional<Domain> ParseDomain(ParserBase& parser) {
  ParserBase::Nesting nesting(parser);
  if (!nesting.ok()) return std::nullopt;
  const auto word = parser.ExpectName("a domain (tensor, sequence, table, dist or scalar)");
  if (!word) return std::nullopt;
  if (word->text == "tensor") return ParseTensor(parser);
  if (word->text == "sequence") return ParseSequence(parser);
  if (word->text == "table") return ParseTable(parser);
  if (word->text == "dist") {
    if (!parser.Expect("(")) return std::nullopt;
    const auto classes = parser.ExpectInteger("the number of classes", kAnyInteger);
    if (!classes || !parser.Expect(")")) return std::nullopt;
    return Domain::Dist(*classes);
  }
  if (word->text == "scalar") {
    if (!parser.Expect("(")) return std::nullopt;
    const auto dtype = ExpectDType(parser);
    if (!dtype || !parser.Expect(")")) return std::nullopt;
    return Domain::Scalar(*dtype);
  }
  parser.ErrorUnknown("domain", *word, kDomainWords);
  return std::nullopt;
}

std::string PrintDomain(const Domain& domain) {
  switch (domain.kind) {
    case Domain::Kind::kTensor: {
      std::vector<std::string> extents;
      for (int64_t extent : domain.shape) extents.push_back(support::PrintInteger(extent));
      return "tensor(" + std::string(tensor::DTypeName(domain.dtype)) + ", [" +
             support::Join(extents) + "])";
    }
    case Domain::Kind::kSequence:
      return "sequence(" + PrintDomain(domain.parts[0]) + ", " +
             support::PrintInteger(domain.size) + ")";
    case Domain::Kind::kTable: {
      std::vector<std::string> columns;
      for (size_t i = 0; i < domain.columns.size(); ++i) {
        columns.push_back(domain.columns[i] + ": " + PrintDomain(domain.parts[i]));
      }
      return "table(" + support::Join(columns) + ")";
    }
    case Domain::Kind::kDist:
      return "dist(" + support::PrintInteger(domain.size) + ")";
    case Domain::Kind::kScalar:
      return "scalar(" + std::string(tensor::DTypeName(domain.dtype)) + ")";
  }
  return "";
}

bool VerifyDomain(const Domain& domain, const std::string& what, support::Span span,
                  support::Diagnostics& diagnostics) {
  if (!CheckDomain(domain, what, 1, span, diagnostics)) return false;
  if (CountElements(domain) > kMaxDomainElements) {
    diagnostics
        .Error(Kind::kResourceBound, span,
               what + " has more than " + std::to_string(kMaxDomainElements) +
                   " elements in one example")
        .Label(PrintDomain(domain));
    return false;
  }
  return true;
}

}  // namespace l3c::l3
