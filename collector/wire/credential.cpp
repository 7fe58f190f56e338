#include "collector/wire/credential.h"

#include <munge.h>

#include <cstdlib>
#include <memory>

namespace sphase {
namespace {

constexpr int kLifeS = 60;

using Context = std::unique_ptr<munge_ctx, decltype(&munge_ctx_destroy)>;

Result<Context> context_at(const MungePlace& place) {
  Context context(munge_ctx_create(), &munge_ctx_destroy);
  if (!context) return Error{"MUNGE: no memory"};
  if (!place.socket.empty()) {
    munge_ctx_set(context.get(), MUNGE_OPT_SOCKET, place.socket.c_str());
  }
  munge_ctx_set(context.get(), MUNGE_OPT_TTL, kLifeS);
  return context;
}

Error error_of(const Context& context, munge_err_t code) {
  const char* const own = munge_ctx_strerror(context.get());
  return Error{std::string("MUNGE: ") + (own != nullptr ? own : munge_strerror(code))};
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }  // NOLINT: libmunge allocates so
};

}  // namespace

Result<std::string> make_credential(const MungePlace& place, std::string_view payload) {
  auto context = context_at(place);
  if (!context) return Error{context.error()};
  char* raw = nullptr;
  const munge_err_t code =
      munge_encode(&raw, context->get(), payload.data(), static_cast<int>(payload.size()));
  const std::unique_ptr<char, Free> credential(raw);
  if (code != EMUNGE_SUCCESS) return error_of(*context, code);
  return std::string(credential.get());
}

Result<Caller> read_credential(const MungePlace& place, const std::string& credential) {
  auto context = context_at(place);
  if (!context) return Error{context.error()};
  void* raw = nullptr;
  int bytes = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  const munge_err_t code =
      munge_decode(credential.c_str(), context->get(), &raw, &bytes, &uid, &gid);
  const std::unique_ptr<void, Free> payload(raw);
  // Expired, rewound and replayed ones are decoded as well: the code alone tells.
  if (code != EMUNGE_SUCCESS) return error_of(*context, code);
  return Caller{
      uid, std::string(static_cast<const char*>(payload.get()), static_cast<std::size_t>(bytes))};
}

}  // namespace sphase
