#include "tests/backends/ptx/ptx_module.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <stdexcept>

namespace l3c::testing {
namespace {

bool IsWordChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' ||
         c == '.';
}

struct Token {
  std::string text;
  int line = 0;
  size_t begin = 0;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) { Tokenise(); }

  PtxModule Parse() {
    while (!AtEnd()) {
      if (Accept(".version")) {
        module_.version = Next();
      } else if (Accept(".target")) {
        module_.target = Next();
      } else if (Accept(".address_size")) {
        if (Next() != "64") Fail("addresses have 64 bits");
      } else if (Accept(".visible")) {
        Expect(".entry");
        ParseEntry();
      } else {
        Fail("'" + Peek() + "' is not read here");
      }
    }
    if (module_.entry.empty()) Fail("there is no .entry");
    return std::move(module_);
  }

 private:
  [[noreturn]] void Fail(const std::string& message) const {
    const int line = tokens_.empty() ? 0 : tokens_[std::min(at_, tokens_.size() - 1)].line;
    throw std::runtime_error("line " + std::to_string(line) + ": " + message);
  }

  void Tokenise() {
    int line = 1;
    for (size_t i = 0; i < text_.size();) {
      const char c = text_[i];
      if (c == '\n') ++line;
      if (std::isspace(static_cast<unsigned char>(c)) != 0) {
        ++i;
      } else if (text_.substr(i, 2) == "//") {
        while (i < text_.size() && text_[i] != '\n') ++i;
      } else if (IsWordChar(c)) {
        const size_t begin = i;
        while (i < text_.size() && IsWordChar(text_[i])) ++i;
        tokens_.push_back({std::string(text_.substr(begin, i - begin)), line, begin});
      } else {
        tokens_.push_back({std::string(1, c), line, i});
        ++i;
      }
    }
  }

  bool AtEnd() const { return at_ >= tokens_.size(); }
  const std::string& Peek(size_t ahead = 0) const {
    static const std::string kEnd;
    return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead].text : kEnd;
  }
  std::string Next() {
    if (AtEnd()) Fail("the text ends too early");
    return tokens_[at_++].text;
  }
  bool Accept(std::string_view text) {
    if (Peek() != text) return false;
    ++at_;
    return true;
  }
  void Expect(std::string_view text) {
    if (!Accept(text)) Fail("expected '" + std::string(text) + "', not '" + Peek() + "'");
  }

  int64_t Integer() {
    const bool negative = Accept("-");
    const std::string digits = Next();
    char* end = nullptr;
    const uint64_t value = std::strtoull(digits.c_str(), &end, 0);
    if (end == digits.c_str() || (*end != '\0' && std::string_view(end) != "U")) {
      Fail("'" + digits + "' is no whole number");
    }
    return static_cast<int64_t>(negative ? 0 - value : value);
  }

  void ParseEntry() {
    if (!module_.entry.empty()) Fail("a second .entry");
    module_.entry = Next();
    Expect("(");
    while (!Accept(")")) {
      Expect(".param");
      Expect(".u64");
      module_.params.push_back(Next());
      if (Peek() != ")") Expect(",");
    }
    if (Accept(".reqntid")) {
      for (size_t d = 0; d < 3; ++d) {
        if (d > 0 && !Accept(",")) break;
        module_.threads[d] = Integer();
      }
    }
    Expect("{");
    while (!Accept("}")) ParseStatement();
    for (PtxInstruction& instruction : module_.instructions) {
      for (PtxOperand& operand : instruction.operands) {
        if (operand.kind != PtxOperand::Kind::kLabel) continue;
        const auto label = labels_.find(operand.name);
        if (label == labels_.end()) Fail("there is no label " + operand.name);
        operand.target = label->second;
      }
    }
  }

  void ParseStatement() {
    if (Accept(".reg")) return ParseRegisters();
    if (Accept(".shared")) return ParseShared();
    if (Peek(1) == ":") {
      if (!labels_.try_emplace(Next(), module_.instructions.size()).second) Fail("a second label");
      Expect(":");
      return;
    }
    ParseInstruction();
  }

  void ParseRegisters() {
    const std::string type = Next().substr(1);
    do {
      const std::string name = Next();
      if (Accept("<")) {
        const int64_t count = Integer();
        for (int64_t i = 0; i < count; ++i) Declare(name + std::to_string(i), type);
        Expect(">");
      } else {
        Declare(name, type);
      }
    } while (Accept(","));
    Expect(";");
  }

  void Declare(const std::string& name, const std::string& type) {
    const auto id = static_cast<uint32_t>(module_.registers.size());
    if (!registers_.try_emplace(name, id).second) Fail("register " + name + " is declared twice");
    module_.registers.push_back({name, type});
  }

  void ParseShared() {
    int64_t align = 1;
    if (Accept(".align")) align = Integer();
    const std::string type = Next();
    const int64_t element = std::atoi(type.c_str() + 2) / 8;
    PtxVariable variable;
    const std::string name = Next();
    Expect("[");
    variable.bytes = Integer() * element;
    Expect("]");
    Expect(";");
    variable.offset = (module_.shared_bytes + align - 1) / align * align;
    module_.shared_bytes = variable.offset + variable.bytes;
    module_.shared[name] = variable;
  }

  void ParseInstruction() {
    PtxInstruction instruction;
    const size_t begin = tokens_[at_].begin;
    instruction.line = tokens_[at_].line;
    if (Accept("@")) {
      instruction.unless = Accept("!");
      instruction.guard = Register(Next());
    }
    std::string opcode = Next();
    for (size_t from = 0; from <= opcode.size();) {
      const size_t dot = std::min(opcode.find('.', from), opcode.size());
      instruction.opcode.push_back(opcode.substr(from, dot - from));
      from = dot + 1;
    }
    while (!Accept(";")) {
      instruction.operands.push_back(ParseOperand(instruction.opcode[0] == "bra"));
      if (Peek() != ";") Expect(",");
    }
    const size_t end = tokens_[at_ - 1].begin + 1;
    instruction.text = std::string(text_.substr(begin, end - begin));
    module_.instructions.push_back(std::move(instruction));
  }

  uint32_t Register(const std::string& name) const {
    const auto found = registers_.find(name);
    if (found == registers_.end()) Fail("there is no register " + name);
    return found->second;
  }

  PtxOperand ParseOperand(bool label) {
    PtxOperand operand;
    if (Accept("{")) {
      operand.kind = PtxOperand::Kind::kVector;
      do {
        operand.vector.push_back(Register(Next()));
      } while (Accept(","));
      Expect("}");
      return operand;
    }
    if (Accept("[")) {
      operand.kind = PtxOperand::Kind::kAddress;
      const std::string base = Next();
      if (base[0] == '%') {
        operand.reg = Register(base);
      } else {
        operand.name = base;
      }
      if (Accept("+")) operand.offset = Integer();
      Expect("]");
      return operand;
    }
    const std::string& word = Peek();
    if (word == "-" || std::isdigit(static_cast<unsigned char>(word[0])) != 0) {
      operand.kind = PtxOperand::Kind::kInteger;
      if (word.size() > 2 && word[0] == '0' && (word[1] == 'f' || word[1] == 'd')) {
        operand.bits = std::strtoull(Next().c_str() + 2, nullptr, 16);
      } else {
        operand.bits = static_cast<uint64_t>(Integer());
      }
      return operand;
    }
    if (word[0] == '%' && registers_.contains(word)) {
      operand.reg = Register(Next());
      return operand;
    }
    if (word[0] == '%' && word.find("id") == std::string::npos) Register(word);
    operand.kind = label ? PtxOperand::Kind::kLabel : PtxOperand::Kind::kName;
    operand.name = Next();
    return operand;
  }

  const std::string_view text_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  PtxModule module_;
  std::map<std::string, uint32_t> registers_;
  std::map<std::string, size_t> labels_;
};

}  // namespace

bool PtxInstruction::Has(std::string_view part) const {
  return std::find(opcode.begin() + 1, opcode.end(), part) != opcode.end();
}

PtxModule ParsePtx(std::string_view text) { return Parser(text).Parse(); }

}  // namespace l3c::testing
