#include "engine/state.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/checksum.hpp"
#include "layout/mpi/flatten.hpp"

namespace ioweir::engine {

namespace {

Host with_storage_calls(Host host) {
    if (host.write_storage == nullptr && host.enter_storage == nullptr) host.write_storage = ::pwrite;
    if (host.read_storage == nullptr && host.enter_storage == nullptr) host.read_storage = ::pread;
    return host;
}

std::vector<std::int64_t> digests_of(const std::vector<policy::FileRule>& rules) {
    std::vector<std::int64_t> digests;
    for (const policy::FileRule& rule : rules) {
        const std::string text = std::to_string(digests.size()) + "\n" + policy::to_toml({"", {rule}});
        digests.push_back(static_cast<std::int64_t>(checksum(text.data(), text.size())));
    }
    return digests;
}

}  // namespace

void PassedThrough::count(const std::string& reason, std::int64_t calls) {
    const std::lock_guard guard(lock_);
    entry(reason).calls += calls;
}

void PassedThrough::mention(const std::string& reason) {
    const std::lock_guard guard(lock_);
    (void)entry(reason);
}

PassedThrough::Entry& PassedThrough::entry(const std::string& reason) {
    const auto known =
        std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.reason == reason; });
    return known != entries_.end() ? *known : entries_.emplace_back(Entry{reason, 0});
}

std::vector<PassedThrough::Entry> PassedThrough::take() {
    const std::lock_guard guard(lock_);
    return std::exchange(entries_, {});
}

Engine::Engine(const mpi::FileCalls& real, Options given, Host services)
    : below(real),
      plan(std::move(given.plan)),
      rule_digests(digests_of(plan.files)),
      verify(given.verify),
      weighs(given.weighs),
      trial_pace(given.trial_pace),
      host(with_storage_calls(services)),
      backend(given.backend != nullptr ? *given.backend : posix_),
      descriptors(backend, services.program_has_open),
      ages_of_types(layout::ages_of_types()),
      seed(given.seed) {}

std::shared_ptr<Handle> Engine::find(MPI_File fh) const {
    const std::shared_lock guard(lock_);
    const auto found = handles_.find(fh);
    return found == handles_.end() ? nullptr : found->second;
}

std::shared_ptr<Handle> Engine::find_named(const std::string& path) const {
    std::vector<std::shared_ptr<Handle>> open;
    {
        const std::shared_lock guard(lock_);
        for (const auto& [fh, handle] : handles_) open.push_back(handle);
    }
    if (open.empty()) return nullptr;
    const StorageScope scope(*this);
    const auto identity_at = [](const std::string& name) {
        struct stat info{};
        return ::stat(name.c_str(), &info) == 0 ? std::optional(FileIdentity{info.st_dev, info.st_ino}) : std::nullopt;
    };
    const std::optional<FileIdentity> wanted = identity_at(path);
    std::shared_ptr<Handle> found;
    for (const std::shared_ptr<Handle>& handle : open) {
        if (handle->path != path) {
            const auto its = handle->engaged ? std::optional(handle->descriptor.identity) : identity_at(handle->path);
            if (!wanted || !its || *its != *wanted) continue;
        }
        found = handle;
        if (handle->engaged) break;
    }
    return found;
}

void Engine::add(MPI_File fh, std::shared_ptr<Handle> handle) {
    const std::unique_lock guard(lock_);
    if (!open_.insert(reinterpret_cast<std::uintptr_t>(fh), handle.get())) overflowed_ = true;
    handles_[fh] = std::move(handle);
}

void Engine::remove(MPI_File fh) {
    const std::unique_lock guard(lock_);
    open_.erase(reinterpret_cast<std::uintptr_t>(fh));
    handles_.erase(fh);
}

std::vector<std::shared_ptr<Handle>> Engine::take_all() {
    const std::unique_lock guard(lock_);
    std::vector<std::shared_ptr<Handle>> all;
    for (auto& [fh, handle] : handles_) all.push_back(std::move(handle));
    handles_.clear();
    open_.clear();
    return all;
}

std::shared_ptr<FileState> Engine::file(const FileIdentity& identity) {
    const std::unique_lock guard(lock_);
    std::weak_ptr<FileState>& known = files_[{identity.device, identity.inode}];
    std::shared_ptr<FileState> state = known.lock();
    if (!state) {
        std::erase_if(files_, [&](const auto& entry) { return entry.second.expired(); });
        state = std::make_shared<FileState>();
        state->identity = identity;
        files_[{identity.device, identity.inode}] = state;
    }
    return state;
}

std::shared_ptr<FileState> Engine::known_file(const FileIdentity& identity) const {
    const std::shared_lock guard(lock_);
    const auto known = files_.find({identity.device, identity.inode});
    return known != files_.end() ? known->second.lock() : nullptr;
}

std::vector<std::shared_ptr<FileState>> Engine::files() const {
    const std::shared_lock guard(lock_);
    std::vector<std::shared_ptr<FileState>> all;
    for (const auto& [identity, known] : files_) {
        if (std::shared_ptr<FileState> state = known.lock()) all.push_back(std::move(state));
    }
    return all;
}

}  // namespace ioweir::engine
