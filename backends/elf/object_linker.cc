#include "backends/elf/object_linker.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace l3c::elf {
namespace {

constexpr uint64_t kMaxAlignment = 4096;
constexpr char kTrap = '\xcc';  // int3, between functions

template <class T>
bool ReadAt(std::span<const char> bytes, uint64_t offset, T& out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return true;
}

// The name at `offset` of a string table.
bool NameAt(std::string_view table, uint64_t offset, std::string& out) {
  if (offset >= table.size()) return false;
  const size_t end = table.find('\0', offset);
  if (end == std::string_view::npos) return false;
  out = table.substr(offset, end - offset);
  return true;
}

absl::Status Damaged(const char* what) {
  return absl::InvalidArgumentError(absl::StrCat("the object file is damaged: ", what));
}

void Align(std::string& bytes, uint64_t alignment, char filler) {
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment, filler);
}

}  // namespace

absl::Status ObjectLinker::Add(std::span<const char> object) {
  Elf64_Ehdr header;
  if (!ReadAt(object, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_REL ||
      header.e_machine != EM_X86_64 || header.e_shentsize != sizeof(Elf64_Shdr)) {
    return absl::InvalidArgumentError("not a relocatable object of x86-64");
  }
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  for (size_t i = 0; i < sections.size(); ++i) {
    if (!ReadAt(object, header.e_shoff + i * sizeof(Elf64_Shdr), sections[i])) {
      return Damaged("section headers");
    }
    const Elf64_Shdr& section = sections[i];
    if (section.sh_type != SHT_NOBITS && (section.sh_offset > object.size() ||
                                          section.sh_size > object.size() - section.sh_offset)) {
      return Damaged("a section ends behind the file");
    }
  }
  const auto content = [&](const Elf64_Shdr& section) {
    return std::string_view(object.data() + section.sh_offset, section.sh_size);
  };
  if (header.e_shstrndx >= sections.size()) return Damaged("section names");

  // Code and constants are appended; where each section went.
  std::vector<Place> placed(sections.size());
  for (size_t i = 0; i < sections.size(); ++i) {
    const Elf64_Shdr& section = sections[i];
    if (!(section.sh_flags & SHF_ALLOC) || section.sh_size == 0) continue;
    std::string name;
    if (!NameAt(content(sections[header.e_shstrndx]), section.sh_name, name)) {
      return Damaged("a section's name");
    }
    // Tables for unwinding: kernels throw nothing.
    if (name == ".eh_frame" || section.sh_type == SHT_NOTE || section.sh_type == SHT_X86_64_UNWIND)
      continue;
    if (section.sh_type != SHT_PROGBITS || (section.sh_flags & (SHF_WRITE | SHF_TLS))) {
      return absl::InvalidArgumentError(absl::StrCat("the object has writable data (", name, ")"));
    }
    const bool code = (section.sh_flags & SHF_EXECINSTR) != 0;
    std::string& part = code ? code_ : constants_;
    const uint64_t alignment = std::max<uint64_t>(section.sh_addralign, 1);
    if (alignment > kMaxAlignment) return Damaged("a section's alignment");
    Align(part, alignment, code ? kTrap : '\0');
    placed[i] = {code ? Part::kCode : Part::kConstants, part.size(), ""};
    part += content(section);
  }

  for (const Elf64_Shdr& symbols : sections) {
    if (symbols.sh_type != SHT_SYMTAB) continue;
    if (symbols.sh_link >= sections.size()) return Damaged("symbols");
    const std::string_view names = content(sections[symbols.sh_link]);
    const std::string_view table = content(symbols);
    std::vector<Place> places;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.size(); at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, table.data() + at, sizeof symbol);
      std::string name;
      if (!NameAt(names, symbol.st_name, name)) return Damaged("a symbol's name");
      Place place;
      if (symbol.st_shndx == SHN_UNDEF) {
        place = {Part::kOutside, 0, name};
      } else if (symbol.st_shndx < placed.size()) {
        place = placed[symbol.st_shndx];
        place.offset += symbol.st_value;
      }
      if (place.part == Part::kCode && ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL &&
          !functions_.emplace(name, place.offset).second) {
        return absl::InvalidArgumentError(absl::StrCat("function ", name, " is defined twice"));
      }
      places.push_back(std::move(place));
    }
    for (const Elf64_Shdr& relocations : sections) {
      if (relocations.sh_type == SHT_REL) return Damaged("relocations of another machine");
      if (relocations.sh_type != SHT_RELA) continue;
      if (relocations.sh_info >= placed.size()) return Damaged("relocations");
      const Place& base = placed[relocations.sh_info];
      if (base.part == Part::kNone) continue;  // of a section that is left out
      const std::string_view entries = content(relocations);
      for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= entries.size(); at += sizeof(Elf64_Rela)) {
        Elf64_Rela entry;
        std::memcpy(&entry, entries.data() + at, sizeof entry);
        const uint64_t type = ELF64_R_TYPE(entry.r_info);
        const uint64_t symbol = ELF64_R_SYM(entry.r_info);
        if (type != R_X86_64_PC32 && type != R_X86_64_PLT32 && type != R_X86_64_PC64) {
          return absl::InvalidArgumentError(
              absl::StrCat("a reference of kind ", type, " that cannot be moved"));
        }
        const int bytes = type == R_X86_64_PC64 ? 8 : 4;
        const uint64_t size = sections[relocations.sh_info].sh_size;
        if (symbol >= places.size() || places[symbol].part == Part::kNone ||
            entry.r_offset > size || size - entry.r_offset < static_cast<uint64_t>(bytes)) {
          return Damaged("a relocation");
        }
        Place where = base;
        where.offset += entry.r_offset;
        references_.push_back({where, bytes, places[symbol], entry.r_addend});
      }
    }
  }
  return absl::OkStatus();
}

void ObjectLinker::AddFunction(const std::string& name, std::span<const std::byte> code) {
  Align(code_, 16, kTrap);
  functions_[name] = code_.size();
  code_.append(reinterpret_cast<const char*>(code.data()), code.size());
}

absl::StatusOr<uint64_t> ObjectLinker::OffsetOf(const std::string& function) const {
  const auto found = functions_.find(function);
  if (found == functions_.end()) {
    return absl::NotFoundError(absl::StrCat("there is no function ", function));
  }
  return found->second;
}

absl::StatusOr<ObjectLinker::Linked> ObjectLinker::Link(
    uint64_t code_address, uint64_t constants_address,
    const std::map<std::string, uint64_t>& outside) const {
  Linked linked{code_, constants_};
  for (const Reference& reference : references_) {
    const auto base = [&](Part part) {
      return part == Part::kCode ? code_address : constants_address;
    };
    uint64_t target = 0;
    if (reference.to.part != Part::kOutside) {
      target = base(reference.to.part) + reference.to.offset;
    } else if (const auto own = functions_.find(reference.to.name); own != functions_.end()) {
      target = code_address + own->second;
    } else if (const auto found = outside.find(reference.to.name); found != outside.end()) {
      target = found->second;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("the code calls ", reference.to.name, ", which is not there"));
    }
    const uint64_t place = base(reference.at.part) + reference.at.offset;
    const int64_t distance = static_cast<int64_t>(target - place) + reference.addend;
    if (reference.bytes == 4 && (distance < std::numeric_limits<int32_t>::min() ||
                                 distance > std::numeric_limits<int32_t>::max())) {
      return absl::InvalidArgumentError("a reference leads further than 2 GiB");
    }
    std::string& part = reference.at.part == Part::kCode ? linked.code : linked.constants;
    std::memcpy(part.data() + reference.at.offset, &distance, static_cast<size_t>(reference.bytes));
  }
  return linked;
}

}  // namespace l3c::elf
