#include "storage/fault.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <string>
#include <vector>

namespace ioweir::storage {
namespace {

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
constexpr FaultName fault_names[] = {{"flip", FaultKind::flip_bit, 0},
                                     {"drop", FaultKind::drop, 0},
                                     {"swap", FaultKind::swap, 0},
                                     {"eio", FaultKind::error, EIO},
                                     {"enospc", FaultKind::error, ENOSPC},
                                     {"edquot", FaultKind::error, EDQUOT},
                                     {"eintr", FaultKind::error, EINTR},
                                     {"short", FaultKind::shorten, 0},
                                     {"read-eio", FaultKind::read_error, EIO},
                                     {"read-eintr", FaultKind::read_error, EINTR},
                                     {"read-short", FaultKind::shorten_read, 0},
                                     {"flush-eio", FaultKind::flush_error, EIO},
                                     {"flush-enospc", FaultKind::flush_error, ENOSPC},
                                     {"flush-eintr", FaultKind::flush_error, EINTR},
                                     {"sync-eio", FaultKind::sync_error, EIO},
                                     {"sync-enospc", FaultKind::sync_error, ENOSPC},
                                     {"sync-eintr", FaultKind::sync_error, EINTR}};

std::string known_names() {
    std::string names;
    for (const FaultName& known : fault_names)
        names += std::string(names.empty() ? "" : ", ") + std::string(known.name) + ":N";
    return names;
}

/// The first half of the pieces' bytes, at least one, as a number.
std::int64_t half(std::int64_t bytes) { return std::max<std::int64_t>(1, bytes / 2); }

}  // namespace

Result<Fault> parse_fault(std::string_view text) {
    const auto bad = [&] {
        return Error{"not a storage fault", std::string(text), "write one of " + known_names() + " with N >= 1"};
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
    const std::int64_t bytes = total_bytes(pieces, count);
    if (bytes == 0 || (fault_.kind != FaultKind::read_error && fault_.kind != FaultKind::shorten_read))
        return below_.attempt_read(descriptor, pieces, count, offset);
    const std::int64_t number = reads_.fetch_add(1) + 1;
    if (fault_.kind == FaultKind::read_error && number == fault_.nth) {
        struck_.fetch_add(1);
        return -fault_.error;
    }
    if (fault_.kind == FaultKind::shorten_read && number >= fault_.nth) {
        struck_.fetch_add(1);
        std::vector<iovec> fewer(pieces, pieces + count);
        std::int64_t left = half(bytes);
        for (iovec& piece : fewer) {
            piece.iov_len = std::min(piece.iov_len, static_cast<std::size_t>(left));
            left -= static_cast<std::int64_t>(piece.iov_len);
        }
        return below_.attempt_read(descriptor, fewer.data(), count, offset);
    }
    return below_.attempt_read(descriptor, pieces, count, offset);
}

int FaultBackend::attempt_flush(int descriptor, std::int64_t bytes, std::int64_t offset) {
    if (fault_.kind == FaultKind::flush_error && flushes_.fetch_add(1) + 1 == fault_.nth) {
        struck_.fetch_add(1);
        return -fault_.error;
    }
    return below_.attempt_flush(descriptor, bytes, offset);
}

int FaultBackend::attempt_sync(int descriptor) {
    if (fault_.kind == FaultKind::sync_error && syncs_.fetch_add(1) + 1 == fault_.nth) {
        struck_.fetch_add(1);
        return -fault_.error;
    }
    return below_.attempt_sync(descriptor);
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
    if (total_bytes(pieces, count) == 0) return below_.attempt_write(descriptor, pieces, count, offset);
    switch (fault_.kind) {
        case FaultKind::none:
        case FaultKind::read_error:
        case FaultKind::shorten_read:
        case FaultKind::flush_error:
            break;
        case FaultKind::shorten:
            if (number >= fault_.nth) return strike(descriptor, pieces, count, offset);
            break;
        case FaultKind::swap:
            if (number > fault_.nth) return attempt_other_of_swap(descriptor, pieces, count, offset);
            [[fallthrough]];
        default:
            if (number == fault_.nth) return strike(descriptor, pieces, count, offset);
    }
    return below_.attempt_write(descriptor, pieces, count, offset);
}

std::int64_t FaultBackend::strike(int descriptor, const iovec* pieces, int count, std::int64_t offset) {
    const std::int64_t bytes = total_bytes(pieces, count);
    struck_.fetch_add(1);
    if (fault_.kind == FaultKind::error) return -fault_.error;
    if (fault_.kind == FaultKind::drop) return bytes;
    std::vector<std::byte> data = gather(pieces, count, fault_.kind == FaultKind::shorten ? half(bytes) : bytes);
    if (fault_.kind == FaultKind::swap) {
        const std::lock_guard guard(swap_lock_);
        held_ = std::move(data);
        held_offset_ = offset;
        return bytes;
    }
    if (fault_.kind == FaultKind::flip_bit) data[data.size() / 2] ^= std::byte{0x10};
    const iovec changed{data.data(), data.size()};
    return below_.attempt_write(descriptor, &changed, 1, offset);
}

std::int64_t FaultBackend::attempt_other_of_swap(int descriptor, const iovec* pieces, int count, std::int64_t offset) {
    const std::int64_t bytes = total_bytes(pieces, count);
    const std::lock_guard guard(swap_lock_);
    if (std::ssize(held_) != bytes) return below_.attempt_write(descriptor, pieces, count, offset);
    std::vector<std::byte> data = gather(pieces, count, bytes);
    const iovec there{data.data(), data.size()}, here{held_.data(), held_.size()};
    below_.attempt_write(descriptor, &there, 1, held_offset_);
    const std::int64_t moved = below_.attempt_write(descriptor, &here, 1, offset);
    held_.clear();
    return moved;
}

}  // namespace ioweir::storage
