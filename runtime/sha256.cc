#include "runtime/sha256.h"

// OpenSSL's newer interface brings its providers and their configuration files along: six megabytes
// of a program that is linked statically, and reading at its start.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace l3c::runtime {

struct Sha256::State {
  SHA256_CTX context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) { SHA256_Init(&state_->context); }

Sha256::~Sha256() = default;

void Sha256::Add(std::span<const std::byte> bytes) {
  SHA256_Update(&state_->context, bytes.data(), bytes.size());
}

std::string Sha256::Finish() {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256_Final(digest, &state_->context);
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

std::string Sha256Of(std::string_view bytes) {
  Sha256 sha;
  sha.Add(std::as_bytes(std::span(bytes.data(), bytes.size())));
  return sha.Finish();
}

}  // namespace l3c::runtime
