// Data at rest: what is read, and what is refused with which words.
#include <sys/stat.h>

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "gtest/gtest.h"
#include "runtime/array_file.h"
#include "runtime/batches.h"
#include "runtime/data_set.h"
#include "tests/runtime/temp_folder.h"

namespace l3c::runtime {
namespace {

using tensor::DType;
using testing::TempFolder;

std::string BigEndian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string Idx(int type, const std::vector<uint32_t>& extents, const std::string& elements) {
  std::string bytes = {0, 0, static_cast<char>(type), static_cast<char>(extents.size())};
  for (uint32_t extent : extents) bytes += BigEndian(extent);
  return bytes + elements;
}

std::string Gzip(const std::string& bytes) {
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(bytes.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

constexpr char kManifest[] = R"({
  "train": { "image": { "file": "image", "format": "idx", "scale": 0.5 },
             "label": { "file": "label", "format": "idx" } } })";

// Three samples of 2×2 bytes and their labels.
class DataTest : public ::testing::Test {
 protected:
  DataTest() {
    folder_.Write("dataset.json", kManifest);
    folder_.Write("image", Idx(8, {3, 2, 2}, std::string("\1\2\3\4\5\6\7\10\11\12\13\14", 12)));
    folder_.Write("label", Idx(8, {3}, std::string("\2\0\1", 3)));
    source_.name = "tiny";
    source_.fields = {{"image", DType::kF32, {2, 2}, 0}, {"label", DType::kU8, {1}, 3}};
  }

  absl::StatusOr<SplitData> Read(const std::string& split = "train") const {
    return ReadSplit(source_, folder_.path(), split);
  }
  // The reading fails, and the message has all of these.
  void ExpectRefused(const std::vector<std::string>& words, const std::string& split = "train") {
    const absl::Status status = Read(split).status();
    ASSERT_FALSE(status.ok());
    const std::string message(status.message());
    for (const std::string& word : words) {
      EXPECT_NE(message.find(word), std::string::npos) << "no '" << word << "' in: " << message;
    }
  }

  TempFolder folder_;
  l0::DataSource source_;
};

TEST_F(DataTest, ReadsIdx) {
  auto data = Read();
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->samples, 3);
  l0::Sampler sampler;
  sampler.kind = l0::SampleKind::kSequential;
  sampler.batch = 2;
  Batches batches(sampler, source_, *data);
  EXPECT_EQ(batches.BatchesPerEpoch(), 2);
  std::vector<float> images(8, -1);
  EXPECT_TRUE(batches.Fill(0, 0, reinterpret_cast<std::byte*>(images.data())).ok());
  EXPECT_EQ(images, (std::vector<float>{.5f, 1, 1.5f, 2, 2.5f, 3, 3.5f, 4}));
  // The last batch has one row, then zeros; batch 3 is the second of epoch 1, the same again.
  for (int64_t number : {1, 3}) {
    EXPECT_TRUE(batches.Fill(number, 0, reinterpret_cast<std::byte*>(images.data())).ok());
    EXPECT_EQ(images, (std::vector<float>{4.5f, 5, 5.5f, 6, 0, 0, 0, 0}));
    std::vector<uint8_t> labels(2, 9);
    EXPECT_TRUE(batches.Fill(number, 1, reinterpret_cast<std::byte*>(labels.data())).ok());
    EXPECT_EQ(labels, (std::vector<uint8_t>{1, 0}));
    std::vector<float> mask(2, -1);
    batches.FillMask(number, mask);
    EXPECT_EQ(mask, (std::vector<float>{1, 0}));
    EXPECT_EQ(batches.Rows(number), 1);
  }
}

TEST_F(DataTest, CompressedIsTheSame) {
  const SplitData plain = *Read();
  const std::string idx = Idx(8, {3, 2, 2}, std::string("\1\2\3\4\5\6\7\10\11\12\13\14", 12));
  folder_.Write("image", Gzip(idx));
  EXPECT_EQ(Read()->fields[0].bytes, plain.fields[0].bytes);
  // In two members, as gzip's own concatenation makes them.
  folder_.Write("image", Gzip(idx.substr(0, 9)) + Gzip(idx.substr(9)));
  EXPECT_EQ(Read()->fields[0].bytes, plain.fields[0].bytes);
}

TEST_F(DataTest, FindsFilesByTheirNames) {
  std::filesystem::remove(folder_ / "dataset.json");
  ExpectRefused({"neither dataset.json nor a file train.image.EXT"});
  std::filesystem::rename(folder_ / "image", folder_ / "train.image.idx");
  folder_.Write("train.label.csv", "label\n2\n0\n1\n");
  auto data = Read();
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->samples, 3);
}

TEST_F(DataTest, ReadsNpy) {
  const std::string header =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 2), }      \n";
  float values[12];
  std::iota(values, values + 12, 0.25f);
  const std::string elements(reinterpret_cast<const char*>(values), sizeof values);
  const std::string npy = std::string("\x93NUMPY\1\0", 8) + static_cast<char>(header.size()) +
                          std::string(1, '\0') + header + elements;
  std::string manifest = kManifest;
  manifest.replace(manifest.find("idx"), 3, "npy");
  folder_.Write("dataset.json", manifest);
  folder_.Write("image", npy);
  auto data = Read();
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(0, std::memcmp(data->fields[0].bytes.data(), values, sizeof values));
  folder_.Write("image", npy.substr(0, npy.size() - 1));
  ExpectRefused({"image: truncated", "3 x 2 x 2"});
  folder_.Write("image", npy + "x");
  ExpectRefused({"bytes follow the last element"});
  folder_.Write("image", "\x93NUMPX" + npy.substr(6));
  ExpectRefused({"not an npy file"});
  folder_.Write("image", npy.substr(0, 9));
  ExpectRefused({"truncated", "npy header"});
}

TEST_F(DataTest, ReadsRaw) {
  std::string manifest = kManifest;
  manifest.replace(manifest.rfind("idx"), 3, "raw");
  folder_.Write("dataset.json", manifest);
  folder_.Write("label", std::string("\2\0\1", 3));
  EXPECT_TRUE(Read().ok());
  source_.fields[1].dtype = DType::kI32;
  ExpectRefused({"label: truncated", "3 bytes"});
}

TEST_F(DataTest, RefusesBadCsv) {
  std::string manifest = kManifest;
  manifest.replace(manifest.rfind("idx"), 3, "csv");
  folder_.Write("dataset.json", manifest);
  folder_.Write("label", "2\n0\nx\n");
  ExpectRefused({"label: line 3: 'x' is not a whole number"});
  folder_.Write("label", "2\n0,1\n");
  ExpectRefused({"label: line 2 has 2 values, not 1"});
  folder_.Write("label", "2\n0\n1.5\n");
  ExpectRefused({"line 3: '1.5'"});
  folder_.Write("label", "");
  ExpectRefused({"label: holds no sample"});
}

TEST_F(DataTest, RefusesDamagedIdx) {
  const std::string good = Idx(8, {3, 2, 2}, std::string(12, '\1'));
  for (size_t length = 0; length < good.size(); ++length) {
    folder_.Write("image", good.substr(0, length));
    ExpectRefused({"/image: truncated"});
  }
  folder_.Write("image", good + "x");
  ExpectRefused({"/image: bytes follow the last element"});
  folder_.Write("image", "\1" + good.substr(1));
  ExpectRefused({"not an idx file", "magic"});
  folder_.Write("image", Idx(7, {3, 2, 2}, std::string(12, '\1')));
  ExpectRefused({"unknown element type"});
  folder_.Write("image", Idx(8, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "x"));
  ExpectRefused({"impossible extents"});
  folder_.Write("image", Idx(8, {0x7FFFFFFF, 2, 2}, "x"));
  ExpectRefused({"truncated", "there are 1"});
}

TEST_F(DataTest, RefusesDamagedCompression) {
  const std::string good = Gzip(Idx(8, {3, 2, 2}, std::string(12, '\1')));
  for (size_t length = 2; length < good.size(); ++length) {
    folder_.Write("image", good.substr(0, length));
    ExpectRefused({"/image: "});
  }
  folder_.Write("image", good + "x");
  ExpectRefused({"bytes follow the compressed data"});
  std::string flipped = good;
  flipped[flipped.size() - 6] ^= 1;  // the checksum
  folder_.Write("image", flipped);
  ExpectRefused({"the compressed data is damaged"});
}

TEST_F(DataTest, AnIgnoredLabelNeedBeNoClass) {
  folder_.Write("label", Idx(8, {3}, std::string("\2\377\1", 3)));
  ExpectRefused({"/label: sample 1: label 255 is outside 0..2"});
  source_.fields[1].ignored = 255;
  ASSERT_TRUE(Read().ok()) << Read().status();
  folder_.Write("label", Idx(8, {3}, std::string("\2\376\1", 3)));
  ExpectRefused({"/label: sample 1: label 254 is outside 0..2"});
}

TEST_F(DataTest, RefusesWhatIsNotAsDeclared) {
  folder_.Write("label", Idx(8, {3}, std::string("\2\3\1", 3)));
  ExpectRefused({"/label: sample 1: label 3 is outside 0..2"});
  folder_.Write("label", Idx(9, {3}, std::string("\2\xFF\1", 3)));
  ExpectRefused({"sample 1: label -1 is outside"});
  folder_.Write("label", Idx(8, {2}, std::string("\2\0", 2)));
  ExpectRefused({"/label: holds 2 samples", "/image holds 3"});
  folder_.Write("label", Idx(8, {0}, ""));
  ExpectRefused({"holds no sample"});
  folder_.Write("label", Idx(13, {3}, std::string(12, '\0')));
  ExpectRefused({"holds elements of f32", "declared u8"});
  folder_.Write("label", Idx(8, {3, 2}, std::string(6, '\0')));
  ExpectRefused({"extents [2]", "declared [1]"});
  source_.fields[1].classes = 0;
  folder_.Write("label", Idx(11, {3}, std::string("\0\1\1\2\0\3", 6)));
  ExpectRefused({"sample 1: 258 does not fit u8"});
}

TEST_F(DataTest, RefusesNumbersThatDoNotFit) {
  const auto write = [&](double last) {
    double values[12] = {};
    values[11] = last;
    std::string big;
    for (double value : values) {
      uint64_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      for (int shift = 56; shift >= 0; shift -= 8) big += static_cast<char>(bits >> shift);
    }
    folder_.Write("image", Idx(14, {3, 2, 2}, big));
  };
  write(6e38);  // 3e38 when it is scaled
  EXPECT_TRUE(Read().ok()) << Read().status();
  write(1e39);
  ExpectRefused({"/image: sample 2: field 'image': 1e39 scaled by 0.5 does not fit f32"});
  write(std::numeric_limits<double>::quiet_NaN());
  ExpectRefused({"/image: sample 2: field 'image': nan is no number"});
  write(-std::numeric_limits<double>::infinity());
  ExpectRefused({"sample 2: field 'image': -inf is no finite number"});
}

// Nothing of it is passed over, not even where it is not read.
TEST_F(DataTest, RefusesWordsThatMeanNothing) {
  const auto write = [&](const std::string& rest) {
    const std::string good = kManifest;
    folder_.Write("dataset.json", good.substr(0, good.rfind('}')) + rest + "}");
  };
  write(R"(, "tset": {})");
  ExpectRefused({"'tset' is no split", "did you mean 'test'?"});
  write(R"(, "test": {"label": {"file": "label", "fromat": "idx"}})");
  ExpectRefused({"test.label: 'fromat' is unknown", "did you mean 'format'?"});
  write(R"(, "test": {"label": "label"})");
  ExpectRefused({"test.label is no object"});
  write(R"(, "train": {})");
  ExpectRefused({"'train' stands twice"});
  write(R"(, "test": {"imgae": {"file": "image", "format": "idx"}})");
  ExpectRefused(
      {"split 'test' has no field 'image', which data 'tiny' declares", "did you mean 'imgae'?"},
      "test");
  folder_.Write("dataset.json", "[]");
  ExpectRefused({"an object of splits was expected"});
}

TEST_F(DataTest, RefusesABadManifest) {
  folder_.Write("dataset.json", "{");
  ExpectRefused({"dataset.json:1:2: not JSON"});
  folder_.Write("dataset.json", kManifest);
  ExpectRefused({"there is no split 'test'"}, "test");
  source_.fields[0].field = "pixels";
  ExpectRefused({"no field 'pixels'", "'image', 'label'"});
  source_.fields[0].field = "image";
  folder_.Write("dataset.json", R"({"train": {"image": {"file": "image", "format": "jpeg"}}})");
  ExpectRefused({"unknown format 'jpeg'"});
  folder_.Write("dataset.json", R"({"train": {"image": {"file": "image", "sclae": 2}}})");
  ExpectRefused({"'sclae' is unknown"});
  folder_.Write("dataset.json", R"({"train": {"image": {"file": "gone", "format": "idx"}}})");
  ExpectRefused({"/gone: no such file"});
  std::filesystem::remove_all(folder_.path());
  ExpectRefused({"there is no folder"});
}

// A pipe that nobody writes to would be waited for for ever.
TEST_F(DataTest, RefusesWhatIsNoRegularFile) {
  const auto make_pipe = [&](const std::string& name) {
    std::filesystem::remove(folder_ / name);
    ASSERT_EQ(mkfifo((folder_ / name).c_str(), 0600), 0);
  };
  make_pipe("pipe");
  std::filesystem::remove(folder_ / "image");
  std::filesystem::create_symlink("pipe", folder_ / "image");
  ExpectRefused({"/image: not a regular file but a pipe"});
  std::filesystem::remove(folder_ / "image");
  std::filesystem::create_directory(folder_ / "image");
  ExpectRefused({"/image: not a regular file but a folder"});
  std::filesystem::remove(folder_ / "image");
  std::filesystem::create_symlink("/dev/zero", folder_ / "image");
  ExpectRefused({"/image: not a regular file but a device"});
  make_pipe("dataset.json");
  ExpectRefused({"/dataset.json: not a regular file but a pipe"});
}

TEST_F(DataTest, ShufflesEachEpochAnew) {
  SplitData data;
  data.samples = data.stored = 100;
  data.fields = {{Stored::kU8, 1, 1, std::vector<std::byte>(100)}};
  for (int i = 0; i < 100; ++i) data.fields[0].bytes[static_cast<size_t>(i)] = std::byte(i);
  l0::DataSource source;
  source.fields = {{"x", DType::kI32, {}, 0}};
  l0::Sampler sampler;
  sampler.batch = 32;
  sampler.seed = 5;
  Batches batches(sampler, source, data);
  const auto epoch = [&](int64_t number) {
    std::vector<int32_t> rows;
    for (int64_t b = 0; b < 4; ++b) {
      std::vector<int32_t> batch(32);
      EXPECT_TRUE(batches.Fill(4 * number + b, 0, reinterpret_cast<std::byte*>(batch.data())).ok());
      rows.insert(rows.end(), batch.begin(), batch.begin() + batches.Rows(4 * number + b));
    }
    return rows;
  };
  std::vector<int32_t> all(100);
  std::iota(all.begin(), all.end(), 0);
  const std::vector<int32_t> first = epoch(0), second = epoch(1);
  EXPECT_NE(first, all);
  EXPECT_NE(first, second);
  EXPECT_EQ(epoch(0), first);
  std::vector<int32_t> sorted = second;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, all);
}

// Stored rows 0, 1, …, n − 1 of one byte, as a sampler hands them on.
class SamplingTest : public ::testing::Test {
 protected:
  void Store(int rows) {
    data_.samples = data_.stored = rows;
    data_.fields = {{Stored::kU8, 1, 1, std::vector<std::byte>(static_cast<size_t>(rows))}};
    for (int i = 0; i < rows; ++i) data_.fields[0].bytes[static_cast<size_t>(i)] = std::byte(i);
  }
  std::vector<int32_t> Batch(int64_t number, int64_t elements = 1) {
    source_.fields[0].shape = elements == 1 ? tensor::Shape{} : tensor::Shape{elements};
    Batches batches(sampler_, source_, data_);
    std::vector<int32_t> rows(static_cast<size_t>(sampler_.batch * elements));
    EXPECT_TRUE(batches.Fill(number, 0, reinterpret_cast<std::byte*>(rows.data())).ok());
    return rows;
  }

  SplitData data_;
  l0::DataSource source_{"d", "", {{"x", DType::kI32, {}, 0}}, {}};
  l0::Sampler sampler_;
};

TEST_F(SamplingTest, WindowsAreConsecutiveRows) {
  Store(10);
  sampler_.kind = l0::SampleKind::kSequential;
  sampler_.batch = 2;
  sampler_.window = 4;
  sampler_.stride = 3;
  EXPECT_EQ(SamplesOf(sampler_, 10), 3);
  EXPECT_EQ(RowsFor(sampler_, 3), 10);
  EXPECT_EQ(Batch(0, 4), (std::vector<int32_t>{0, 1, 2, 3, 3, 4, 5, 6}));
  EXPECT_EQ(Batch(1, 4), (std::vector<int32_t>{6, 7, 8, 9, 0, 0, 0, 0}));
  // A field that is no window has the window's last row.
  EXPECT_EQ(Batch(0), (std::vector<int32_t>{3, 6}));
}

TEST_F(SamplingTest, ABatchTakesEvenlyOfEachShard) {
  Store(13);
  sampler_.kind = l0::SampleKind::kEpochShuffle;
  sampler_.batch = 6;
  sampler_.shards = 3;
  EXPECT_EQ(SamplesOf(sampler_, 13), 12);
  std::vector<int32_t> seen;
  for (int64_t b = 0; b < 2; ++b) {
    const std::vector<int32_t> rows = Batch(b);
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ(rows[i] / 4, static_cast<int32_t>(i / 2));
    seen.insert(seen.end(), rows.begin(), rows.end());
  }
  std::sort(seen.begin(), seen.end());
  for (int32_t i = 0; i < 12; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
}

// 7 samples a shard make three batches of two each and a rest of one each.
TEST_F(SamplingTest, TheRestOfTheShardsIsShort) {
  Store(15);
  sampler_.kind = l0::SampleKind::kEpochShuffle;
  sampler_.batch = 4;
  sampler_.shards = 2;
  std::vector<int32_t> seen;
  for (int64_t b = 0; b < 4; ++b) {
    const std::vector<int32_t> rows = Batch(b);
    const size_t real = b < 3 ? 4 : 2;
    for (size_t i = 0; i < real; ++i) {
      EXPECT_EQ(rows[i] / 7, static_cast<int32_t>(i / (real / 2))) << b;
      seen.push_back(rows[i]);
    }
  }
  std::sort(seen.begin(), seen.end());
  ASSERT_EQ(seen.size(), 14u);
  for (int32_t i = 0; i < 14; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST_F(SamplingTest, ReplayDrawsFromTheLastRowsSeen) {
  Store(100);
  sampler_.kind = l0::SampleKind::kReplay;
  sampler_.batch = 8;
  sampler_.buffer = 20;
  for (int32_t row : Batch(0)) EXPECT_LT(row, 8);
  double mean = 0;
  double recent = 0;
  for (int64_t b = 4; b < 12; ++b) {
    const auto newest = static_cast<int32_t>((b + 1) * 8 - 1);
    sampler_.recent = false;
    for (int32_t row : Batch(b)) {
      EXPECT_LE(row, newest);
      EXPECT_GT(row, newest - 20);
      mean += newest - row;
    }
    sampler_.recent = true;
    for (int32_t row : Batch(b)) recent += newest - row;
  }
  EXPECT_NEAR(mean / 64, 9.5, 2.5);
  EXPECT_NEAR(recent / 64, 6.2, 2.5);
  EXPECT_EQ(Batch(7), Batch(7));
}

TEST_F(DataTest, MakesSyntheticData) {
  const SplitData train = SyntheticSplit(source_, "train", 1000);
  const SplitData test = SyntheticSplit(source_, "test", 1000);
  EXPECT_EQ(train.fields[0].bytes, SyntheticSplit(source_, "train", 1000).fields[0].bytes);
  EXPECT_NE(train.fields[0].bytes, test.fields[0].bytes);
  std::vector<int> seen(3);
  for (size_t i = 0; i < 1000; ++i) {
    int64_t label;
    std::memcpy(&label, train.fields[1].bytes.data() + 8 * i, 8);
    ++seen.at(static_cast<size_t>(label));
  }
  for (int count : seen) EXPECT_GT(count, 200);
}

// An epoch of megabyte rows is not made in full: it took gigabytes, and minutes before the first
// step.
TEST_F(DataTest, SyntheticRowsThatAreLargeAreRepeatedSooner) {
  source_.fields[0].shape = {512, 1024};
  const SplitData split = SyntheticSplit(source_, "train", 60000);
  EXPECT_EQ(split.samples, 60000);
  EXPECT_GE(split.stored, 32);
  EXPECT_LE(split.fields[0].bytes.size(), size_t{64} << 20);
}

TEST(RealData, Mnist) {
  l0::DataSource source;
  source.name = "mnist";
  source.fields = {{"images", DType::kF32, {28, 28}, 0}, {"labels", DType::kU8, {1}, 10}};
  const std::string folder = std::string(L3C_SOURCE_DIR) + "/data/mnist";
  auto data = ReadSplit(source, folder, "test");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->samples, 10000);
  EXPECT_EQ(data->fields[1].bytes[0], std::byte{7});
  source.fields[0].shape = {28, 27};
  EXPECT_FALSE(ReadSplit(source, folder, "test").ok());
}

}  // namespace
}  // namespace l3c::runtime
