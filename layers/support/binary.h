// Values as bytes, for tables that one program writes and another reads.
//
// A type is given by one function for both directions:
//   template <class Archive> void Fields(Archive& archive, Pool& pool) {
//     archive(pool.name, pool.kind, pool.size);
//   }
// which is found by its argument. Integers, enumerations and reals take eight bytes, texts and
// lists begin with their length. A reader given other bytes than were written fails and never reads
// outside of them.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace l3c::support {

template <class T>
concept PlainValue = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class BinaryWriter {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (Write(values), ...);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  template <class T>
  void Write(const T& value) {
    if constexpr (std::is_floating_point_v<T>) {
      const double real = value;
      Append(&real);
    } else if constexpr (PlainValue<T>) {
      const auto word = static_cast<uint64_t>(value);
      Append(&word);
    } else {
      // Fields() serves both directions and so takes what it may change; this one changes nothing.
      Fields(*this, const_cast<T&>(value));
    }
  }
  void Write(const std::string& text) {
    Write(text.size());
    bytes_ += text;
  }
  template <class T>
  void Write(const std::vector<T>& list) {
    Write(list.size());
    for (const T& value : list) Write(value);
  }
  template <class A, class B>
  void Write(const std::pair<A, B>& pair) {
    Write(pair.first);
    Write(pair.second);
  }
  template <class K, class V>
  void Write(const std::map<K, V>& map) {
    Write(map.size());
    for (const auto& entry : map) Write(entry);
  }
  template <class T>
  void Write(const std::optional<T>& value) {
    Write(value.has_value());
    if (value) Write(*value);
  }
  template <class T>
  void Append(const T* word) {
    bytes_.append(reinterpret_cast<const char*>(word), sizeof *word);
  }

  std::string bytes_;
};

class BinaryReader {
 public:
  explicit BinaryReader(std::string_view bytes) : bytes_(bytes) {}

  template <class... T>
  void operator()(T&... values) {
    (Read(values), ...);
  }
  // Everything so far was there.
  bool ok() const { return ok_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  template <class T>
  void Read(T& value) {
    if constexpr (PlainValue<T>) {
      std::conditional_t<std::is_floating_point_v<T>, double, uint64_t> word{};
      if (!Take(&word)) return;
      value = static_cast<T>(word);
    } else {
      Fields(*this, value);
    }
  }
  void Read(std::string& text) {
    const size_t size = Count(1);
    text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
  }
  template <class T>
  void Read(std::vector<T>& list) {
    list.resize(Count(1));
    for (T& value : list) {
      if (!ok_) return;
      Read(value);
    }
  }
  template <class A, class B>
  void Read(std::pair<A, B>& pair) {
    Read(pair.first);
    Read(pair.second);
  }
  template <class K, class V>
  void Read(std::map<K, V>& map) {
    const size_t size = Count(1);
    for (size_t i = 0; i < size && ok_; ++i) {
      std::pair<K, V> entry;
      Read(entry);
      map.insert(std::move(entry));
    }
  }
  template <class T>
  void Read(std::optional<T>& value) {
    bool there = false;
    Read(there);
    if (!there || !ok_) return;
    Read(value.emplace());
  }
  // A length; 0 when that many elements of at least `size` bytes cannot follow.
  size_t Count(size_t size) {
    uint64_t count = 0;
    if (Take(&count) && count <= bytes_.size() / size) return count;
    ok_ = false;
    return 0;
  }
  template <class T>
  bool Take(T* word) {
    if (bytes_.size() < sizeof *word) ok_ = false;
    if (!ok_) return false;
    std::memcpy(word, bytes_.data(), sizeof *word);
    bytes_.remove_prefix(sizeof *word);
    return true;
  }

  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace l3c::support
