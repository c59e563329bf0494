// Segments added to a real executable: this test itself.
#include "backends/elf/executable_file.h"

#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "gtest/gtest.h"

namespace l3c::elf {
namespace {

constexpr char kContent[] = "a segment that was added";

std::string OwnBytes() {
  std::ifstream in("/proc/self/exe", std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

// Run only by the copy below, which has one more segment of data and one of code.
TEST(ExecutableFile, DISABLED_FindsWhatWasAdded) {
  struct Found {
    bool data = false;
    int answer = 0;
  } found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        auto* result = static_cast<Found*>(out);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr) & segment = info->dlpi_phdr[i];
          const auto address = info->dlpi_addr + segment.p_vaddr;
          if (segment.p_type != PT_LOAD) continue;
          if (segment.p_memsz == sizeof kContent) {
            result->data = std::memcmp(reinterpret_cast<const void*>(address), kContent,
                                       sizeof kContent) == 0 &&
                           segment.p_flags == PF_R;
          } else if (segment.p_memsz == 6) {
            result->answer = reinterpret_cast<int (*)()>(address)();
          }
        }
        return 1;  // the executable comes first
      },
      &found);
  EXPECT_TRUE(found.data);
  EXPECT_EQ(found.answer, 42);
}

TEST(ExecutableFile, AddsSegmentsThatAreMapped) {
  absl::StatusOr<ExecutableFile> file = ExecutableFile::Parse(OwnBytes());
  ASSERT_TRUE(file.ok()) << file.status();
  const uint64_t first = file->NextAddress();
  EXPECT_EQ(first % 4096, 0u);
  file->AddSegment(".rodata.added", {kContent, sizeof kContent}, /*executable=*/false);
  EXPECT_EQ(file->NextAddress(), first + 4096);
  const std::string code("\xb8\x2a\x00\x00\x00\xc3", 6);  // mov eax, 42; ret
  file->AddSegment(".text.added", code, /*executable=*/true);
  const std::string out = std::move(*file).Finish();

  char path[] = "/tmp/l3c-elf-XXXXXX";
  const int descriptor = mkstemp(path);
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(write(descriptor, out.data(), out.size()), static_cast<ssize_t>(out.size()));
  ASSERT_EQ(fchmod(descriptor, 0700), 0);
  close(descriptor);
  const std::string command =
      std::string(path) +
      " --gtest_also_run_disabled_tests"
      " --gtest_filter=ExecutableFile.DISABLED_FindsWhatWasAdded >/dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0);

  const absl::StatusOr<ExecutableFile> parsed = ExecutableFile::Parse(out);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const auto section = parsed->Find(".rodata.added");
  ASSERT_TRUE(section);
  EXPECT_EQ(section->address, first);
  EXPECT_EQ(out.substr(section->offset, section->size), std::string(kContent, sizeof kContent));
  EXPECT_FALSE(parsed->Find(".rodata.adde"));
  unlink(path);
}

TEST(ExecutableFile, RefusesWhatIsNoExecutable) {
  EXPECT_FALSE(ExecutableFile::Parse("").ok());
  EXPECT_FALSE(ExecutableFile::Parse(std::string(100, 'x')).ok());
  const std::string own = OwnBytes();
  EXPECT_FALSE(ExecutableFile::Parse(own.substr(0, 100)).ok());
  EXPECT_FALSE(ExecutableFile::Parse(own.substr(0, own.size() - 1)).ok());
  // Nothing in the header leads outside of the file.
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string head = own.substr(0, 4096);
    head[random() % 64] = static_cast<char>(random());
    const auto file = ExecutableFile::Parse(head);
    if (file.ok()) file->Find(".text");
  }
}

}  // namespace
}  // namespace l3c::elf
