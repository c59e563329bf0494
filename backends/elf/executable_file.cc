#include "backends/elf/executable_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"

namespace l3c::elf {
namespace {

constexpr uint64_t kPage = 4096;

template <class T>
T ReadAt(const std::string& bytes, uint64_t offset) {
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return out;
}

template <class T>
void Append(std::string& bytes, const T& object) {
  bytes.append(reinterpret_cast<const char*>(&object), sizeof object);
}

template <class T>
std::vector<T> ReadTable(const std::string& bytes, uint64_t offset, size_t count) {
  std::vector<T> table(count);
  std::memcpy(table.data(), bytes.data() + offset, count * sizeof(T));
  return table;
}

bool Holds(const std::string& bytes, uint64_t offset, uint64_t size) {
  return offset <= bytes.size() && size <= bytes.size() - offset;
}

}  // namespace

absl::StatusOr<ExecutableFile> ExecutableFile::Parse(std::string bytes) {
  const auto wrong = [](const char* what) { return absl::InvalidArgumentError(what); };
  if (!Holds(bytes, 0, sizeof(Elf64_Ehdr))) return wrong("not an executable");
  const auto header = ReadAt<Elf64_Ehdr>(bytes, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_machine != EM_X86_64 || (header.e_type != ET_EXEC && header.e_type != ET_DYN)) {
    return wrong("not an executable of x86-64");
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_shentsize != sizeof(Elf64_Shdr) ||
      !Holds(bytes, header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr)) ||
      !Holds(bytes, header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr)) ||
      header.e_shstrndx >= header.e_shnum) {
    return wrong("an executable without headers");
  }
  for (const auto& section : ReadTable<Elf64_Shdr>(bytes, header.e_shoff, header.e_shnum)) {
    if (section.sh_type != SHT_NOBITS && !Holds(bytes, section.sh_offset, section.sh_size)) {
      return wrong("an executable with a section outside of the file");
    }
  }
  ExecutableFile file;
  bool first = true;
  uint64_t end = 0;
  for (const auto& segment : ReadTable<Elf64_Phdr>(bytes, header.e_phoff, header.e_phnum)) {
    if (segment.p_type != PT_LOAD) continue;
    if (first) file.delta_ = segment.p_vaddr - segment.p_offset;
    first = false;
    end = std::max(end, segment.p_vaddr + segment.p_memsz);
  }
  if (first) return wrong("an executable that loads nothing");
  file.bytes_ = std::move(bytes);
  // Behind the file's own bytes, and behind the memory that its zeroed data takes.
  file.end_ = std::max<uint64_t>(file.bytes_.size(), end - file.delta_);
  return file;
}

std::optional<ExecutableFile::Section> ExecutableFile::Find(std::string_view name) const {
  const auto header = ReadAt<Elf64_Ehdr>(bytes_, 0);
  const auto sections = ReadTable<Elf64_Shdr>(bytes_, header.e_shoff, header.e_shnum);
  const Elf64_Shdr& names = sections[header.e_shstrndx];
  const std::string_view text(bytes_.data() + names.sh_offset, names.sh_size);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_name >= text.size() || section.sh_type == SHT_NOBITS) continue;
    const std::string_view found = text.substr(section.sh_name);
    if (found.substr(0, found.find('\0')) == name) {
      return Section{section.sh_addr, section.sh_offset, section.sh_size};
    }
  }
  return std::nullopt;
}

void ExecutableFile::Patch(uint64_t offset, std::string_view bytes) {
  std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<ptrdiff_t>(offset));
}

uint64_t ExecutableFile::NextOffset() const {
  const uint64_t end = std::max<uint64_t>(end_, bytes_.size());
  return (end + kPage - 1) / kPage * kPage;
}

uint64_t ExecutableFile::NextAddress() const { return NextOffset() + delta_; }

void ExecutableFile::AddSegment(const std::string& name, std::string_view content,
                                bool executable) {
  const uint64_t offset = NextOffset();
  bytes_.resize(offset, '\0');
  bytes_ += content;
  added_.push_back({name, offset, content.size(), executable});
}

std::string ExecutableFile::Finish() && {
  auto header = ReadAt<Elf64_Ehdr>(bytes_, 0);
  auto segments = ReadTable<Elf64_Phdr>(bytes_, header.e_phoff, header.e_phnum);
  auto sections = ReadTable<Elf64_Shdr>(bytes_, header.e_shoff, header.e_shnum);
  const Elf64_Shdr old_names = sections[header.e_shstrndx];
  std::string names = bytes_.substr(old_names.sh_offset, old_names.sh_size);

  const auto add = [&](uint64_t offset, uint64_t size, bool executable) {
    Elf64_Phdr segment{};
    segment.p_type = PT_LOAD;
    segment.p_flags = PF_R | (executable ? PF_X : 0u);
    segment.p_offset = offset;
    segment.p_vaddr = segment.p_paddr = offset + delta_;
    segment.p_filesz = segment.p_memsz = size;
    segment.p_align = kPage;
    segments.push_back(segment);
  };
  for (const Added& added : added_) {
    add(added.offset, added.size, added.executable);
    Elf64_Shdr section{};
    section.sh_name = static_cast<Elf64_Word>(names.size());
    section.sh_type = SHT_PROGBITS;
    section.sh_flags = SHF_ALLOC | (added.executable ? SHF_EXECINSTR : 0u);
    section.sh_addr = added.offset + delta_;
    section.sh_offset = added.offset;
    section.sh_size = added.size;
    section.sh_addralign = kPage;
    sections.push_back(section);
    names += added.name + '\0';
  }

  const uint64_t headers = NextOffset();
  const uint64_t headers_size = (segments.size() + 1) * sizeof(Elf64_Phdr);
  add(headers, headers_size, false);
  bytes_.resize(headers, '\0');
  for (Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_PHDR) {
      segment.p_offset = headers;
      segment.p_vaddr = segment.p_paddr = headers + delta_;
      segment.p_filesz = segment.p_memsz = headers_size;
    }
    Append(bytes_, segment);
  }
  sections[header.e_shstrndx].sh_offset = bytes_.size();
  sections[header.e_shstrndx].sh_size = names.size();
  bytes_ += names;
  bytes_.resize((bytes_.size() + 7) / 8 * 8, '\0');
  header.e_phoff = headers;
  header.e_phnum = static_cast<Elf64_Half>(segments.size());
  header.e_shoff = bytes_.size();
  header.e_shnum = static_cast<Elf64_Half>(sections.size());
  for (const Elf64_Shdr& section : sections) Append(bytes_, section);
  std::memcpy(bytes_.data(), &header, sizeof header);
  return std::move(bytes_);
}

}  // namespace l3c::elf
