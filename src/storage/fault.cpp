#include "storage/fault.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <string>
#include <vector>

namespace ioweir::storage {
namespace {

std::int64_t total_bytes(const iovec* pieces, int count) {
    std::int64_t total = 0;
    for (int i = 0; i < count; ++i) total += static_cast<std::int64_t>(pieces[i].iov_len);
    return total;
}

/// The first `bytes` bytes of the pieces, in one block.
std::vector<std::byte> gather(const iovec* pieces, int count, std::int64_t bytes) {
    std::vector<std::byte> data;
    data.reserve(static_cast<std::size_t>(bytes));
    for (int i = 0; i < count && std::ssize(data) < bytes; ++i) {
        const auto* first = static_cast<const std::byte*>(pieces[i].iov_base);
        const auto length =
            std::min<std::int64_t>(static_cast<std::int64_t>(pieces[i].iov_len), bytes - std::ssize(data));
        data.insert(data.end(), first, first + length);
    }
    return data;
}

struct FaultName {
    std::string_view name;
    FaultKind kind;
    int error;
};
constexpr FaultName fault_names[] = {{"flip", FaultKind::flip_bit, 0},         {"drop", FaultKind::drop, 0},
                                     {"eio", FaultKind::error, EIO},           {"enospc", FaultKind::error, ENOSPC},
                                     {"edquot", FaultKind::error, EDQUOT},     {"eintr", FaultKind::error, EINTR},
                                     {"read-eio", FaultKind::read_error, EIO}, {"short", FaultKind::shorten, 0}};

}  // namespace

Result<Fault> parse_fault(std::string_view text) {
    const auto bad = [&] {
        return Error{"not a storage fault", std::string(text),
                     "write flip:N, drop:N, eio:N, enospc:N, edquot:N, eintr:N, read-eio:N or short:N with N >= 1"};
    };
    const auto colon = text.find(':');
    if (colon == std::string_view::npos) return bad();
    const auto name = std::find_if(std::begin(fault_names), std::end(fault_names),
                                   [&](const FaultName& known) { return known.name == text.substr(0, colon); });
    if (name == std::end(fault_names)) return bad();
    const std::string_view digits = text.substr(colon + 1);
    std::int64_t nth = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), nth);
    if (code != std::errc{} || end != digits.data() + digits.size() || nth < 1) return bad();
    return Fault{name->kind, nth, name->error};
}

Opened FaultBackend::attempt_open(const char* path, int flags, mode_t mode) {
    return below_.attempt_open(path, flags, mode);
}

int FaultBackend::attempt_close(int descriptor) { return below_.attempt_close(descriptor); }

std::int64_t FaultBackend::attempt_read(int descriptor, const iovec* pieces, int count, std::int64_t offset) {
    if (fault_.kind == FaultKind::read_error && total_bytes(pieces, count) > 0 &&
        reads_.fetch_add(1) + 1 == fault_.nth) {
        struck_.fetch_add(1);
        return -fault_.error;
    }
    return below_.attempt_read(descriptor, pieces, count, offset);
}

int FaultBackend::attempt_allocate(int descriptor, int mode, std::int64_t offset, std::int64_t bytes) {
    if (mode == 0 && fault_.kind == FaultKind::error && writes_.fetch_add(1) + 1 == fault_.nth) {
        struck_.fetch_add(1);
        return -fault_.error;
    }
    return below_.attempt_allocate(descriptor, mode, offset, bytes);
}

std::int64_t FaultBackend::attempt_write(int descriptor, const iovec* pieces, int count, std::int64_t offset) {
    const std::int64_t number = writes_.fetch_add(1) + 1;
    const bool strikes = fault_.kind == FaultKind::shorten ? number >= fault_.nth : number == fault_.nth;
    const std::int64_t bytes = total_bytes(pieces, count);
    if (fault_.kind == FaultKind::none || fault_.kind == FaultKind::read_error || !strikes || bytes == 0) {
        return below_.attempt_write(descriptor, pieces, count, offset);
    }
    struck_.fetch_add(1);
    switch (fault_.kind) {
        case FaultKind::drop:
            return bytes;
        case FaultKind::error:
            return -fault_.error;
        case FaultKind::flip_bit: {
            std::vector<std::byte> data = gather(pieces, count, bytes);
            data[data.size() / 2] ^= std::byte{0x10};
            const iovec changed{data.data(), data.size()};
            return below_.attempt_write(descriptor, &changed, 1, offset);
        }
        case FaultKind::shorten: {
            std::vector<std::byte> data = gather(pieces, count, std::max<std::int64_t>(1, bytes / 2));
            const iovec half{data.data(), data.size()};
            return below_.attempt_write(descriptor, &half, 1, offset);
        }
        case FaultKind::none:
        case FaultKind::read_error:
            break;
    }
    return below_.attempt_write(descriptor, pieces, count, offset);
}

}  // namespace ioweir::storage
