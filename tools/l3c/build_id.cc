#include "tools/l3c/build_id.h"

#include <elf.h>
#include <link.h>
#include <sys/stat.h>

#include <cstring>

namespace l3c::tools {
namespace {

// Of the first object, which is the program itself.
int FindNote(dl_phdr_info* info, size_t, void* out) {
  for (int p = 0; p < info->dlpi_phnum; ++p) {
    const ElfW(Phdr) & header = info->dlpi_phdr[p];
    if (header.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const unsigned char*>(info->dlpi_addr + header.p_vaddr);
    const unsigned char* end = at + header.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const auto aligned = [](size_t size) { return (size + 3) / 4 * 4; };
      const unsigned char* name = at + sizeof note;
      const unsigned char* bytes = name + aligned(note.n_namesz);
      if (bytes + note.n_descsz > end) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          std::memcmp(name, "GNU", 4) == 0) {
        static_cast<std::string*>(out)->assign(reinterpret_cast<const char*>(bytes), note.n_descsz);
        return 1;
      }
      at = bytes + aligned(note.n_descsz);
    }
  }
  return 1;
}

std::string Find() {
  std::string id = L3C_VERSION;
  std::string note;
  dl_iterate_phdr(FindNote, &note);
  if (!note.empty()) return id + " " + note;
  struct stat status = {};
  if (stat("/proc/self/exe", &status) == 0) {
    id += " " + std::to_string(status.st_size) + " " + std::to_string(status.st_mtim.tv_sec) + "." +
          std::to_string(status.st_mtim.tv_nsec);
  }
  return id;
}

}  // namespace

const std::string& BuildId() {
  static const std::string id = Find();
  return id;
}

}  // namespace l3c::tools
