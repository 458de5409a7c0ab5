#include "engine/files/descriptors.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace ioweir::engine {
namespace {

FileIdentity identity_of(const struct stat& info) {
    return {static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino)};
}

/// Somebody may have put a pipe or a terminal there since the program has opened it: they are not waited for, or taken.
int flags_for(bool readable, bool writable) {
    return (!writable ? O_RDONLY : readable ? O_RDWR : O_WRONLY) | O_NONBLOCK | O_NOCTTY;
}

}  // namespace

Descriptors::Opened Descriptors::open(const std::string& path, bool readable, bool writable) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) return {{}, errno};
    Descriptor descriptor;
    if (unpark(identity_of(info), readable, writable, descriptor)) return {descriptor, 0};
    const storage::Opened opened = backend_.open(path.c_str(), flags_for(readable, writable));
    if (opened.error != 0) return {{}, opened.error};
    if (::fstat(opened.descriptor, &info) != 0) {
        const int error = errno;
        backend_.close(opened.descriptor);
        return {{}, error};
    }
    return {{opened.descriptor, readable, writable, identity_of(info)}, 0};
}

bool Descriptors::unpark(const FileIdentity& identity, bool readable, bool writable, Descriptor& found) {
    const std::lock_guard guard(lock_);
    const auto fits = std::find_if(parked_.begin(), parked_.end(), [&](const Descriptor& one) {
        return one.identity == identity && one.readable == readable && one.writable == writable;
    });
    if (fits == parked_.end()) return false;
    found = *fits;
    parked_.erase(fits);
    return is_intact(found);
}

void Descriptors::release(const Descriptor& descriptor) {
    const std::lock_guard guard(lock_);
    if (descriptor.number >= 0) parked_.push_back(descriptor);
    std::erase_if(parked_, [&](const Descriptor& one) {
        if (!is_intact(one)) return true;  // somebody else's by now
        if (!may_close(one.identity)) return false;
        backend_.close(one.number);
        return true;
    });
}

bool Descriptors::is_intact(const Descriptor& descriptor) {
    struct stat info{};
    return ::fstat(descriptor.number, &info) == 0 && identity_of(info) == descriptor.identity;
}

std::size_t Descriptors::parked() const {
    const std::lock_guard guard(lock_);
    return parked_.size();
}

}  // namespace ioweir::engine
