#include "base/file_access.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/raw_syscall.hpp"

namespace ioweir::guarded {
namespace {

constexpr const char* attribute_name = "system.posix_acl_access";
/// linux/posix_acl_xattr.h: a version, and entries of tag, permissions and number.
constexpr std::uint32_t attribute_version = 2;
constexpr std::uint32_t no_id = UINT32_MAX;
enum Tag : std::uint16_t { user_object = 1, user = 2, group_object = 4, group_tag = 8, mask_tag = 16, other = 32 };
constexpr std::size_t head_bytes = 4, entry_bytes = 8;

/// By the name that the kernel gives a descriptor: calls that take descriptors refuse one of O_PATH, and an owner may change what he may
/// not open.
class ByName {
public:
    explicit ByName(int descriptor) { std::snprintf(text_.data(), text_.size(), "/proc/self/fd/%d", descriptor); }
    [[nodiscard]] long word() const { return raw::word(text_.data()); }

private:
    std::array<char, 40> text_{};
};

int result_of(long result) { return result < 0 ? errno : 0; }

/// Neither call goes where a preloaded library could take it for the program's.
template <typename Call, typename ByNameCall>
int either(int descriptor, Call&& by_descriptor, ByNameCall&& by_name) {
    const int error = result_of(by_descriptor());
    return error == EBADF ? result_of(by_name(ByName(descriptor).word())) : error;
}

int set_mode(int descriptor, mode_t mode) {
    return either(
        descriptor, [&] { return raw::call(SYS_fchmod, descriptor, mode); },
        [&](long name) { return raw::call(SYS_fchmodat, AT_FDCWD, name, mode); });
}

int set_owner(int descriptor, uid_t owner, gid_t group) {
    return result_of(raw::call(SYS_fchownat, descriptor, raw::word(""), static_cast<long>(owner),
                               static_cast<long>(group), AT_EMPTY_PATH));
}

int set_attribute(int descriptor, const std::string& value) {
    const auto size = static_cast<long>(value.size());
    return either(
        descriptor,
        [&] {
            return raw::call(SYS_fsetxattr, descriptor, raw::word(attribute_name), raw::word(value.data()), size, 0);
        },
        [&](long name) {
            return raw::call(SYS_setxattr, name, raw::word(attribute_name), raw::word(value.data()), size, 0);
        });
}

/// Empty: it has none, or the file system knows none. An errno value else.
int get_attribute(int descriptor, std::string& value) {
    value.assign(std::size_t{64} << 10, '\0');
    long length = -1;
    const auto size = static_cast<long>(value.size());
    int error = either(
        descriptor,
        [&] {
            return length =
                       raw::call(SYS_fgetxattr, descriptor, raw::word(attribute_name), raw::word(value.data()), size);
        },
        [&](long name) {
            return length = raw::call(SYS_getxattr, name, raw::word(attribute_name), raw::word(value.data()), size);
        });
    if (error == ENODATA || error == EOPNOTSUPP || error == ENOSYS) error = 0;
    value.resize(error == 0 && length > 0 ? static_cast<std::size_t>(length) : 0);
    return error;
}

unsigned with_search(unsigned permissions) { return (permissions & 6U) | ((permissions & 6U) != 0 ? 1U : 0U); }

template <typename Change>
FileAccess changed(FileAccess access, Change&& change) {
    access.of_owner = change(access.of_owner);
    access.of_group = change(access.of_group);
    access.of_others = change(access.of_others);
    if (access.mask) access.mask = change(*access.mask);
    for (FileAccess::Named& entry : access.named) entry.permissions = change(entry.permissions);
    return access;
}

/// The mask that takes nothing away, and entries as the mask leaves them.
FileAccess without_mask(FileAccess access) {
    const unsigned mask = access.mask.value_or(7U);
    access.of_group &= mask;
    for (FileAccess::Named& entry : access.named) entry.permissions &= mask;
    access.mask.reset();
    return access;
}

FileAccess with_mask(FileAccess access) {
    std::sort(access.named.begin(), access.named.end(),
              [](const auto& a, const auto& b) { return a.is_group != b.is_group ? b.is_group : a.id < b.id; });
    access.mask.reset();
    if (access.named.empty()) return access;
    unsigned mask = access.of_group;
    for (const FileAccess::Named& entry : access.named) mask |= entry.permissions;
    access.mask = mask;
    return access;
}

/// Takes an entry out of the list.
std::optional<unsigned> take_entry(FileAccess& access, bool is_group, std::uint32_t id) {
    const auto found = std::find_if(access.named.begin(), access.named.end(),
                                    [&](const auto& entry) { return entry.is_group == is_group && entry.id == id; });
    if (found == access.named.end()) return std::nullopt;
    const unsigned permissions = found->permissions;
    access.named.erase(found);
    return permissions;
}

/// Besides what it may by another entry.
void add_entry(FileAccess& access, FileAccess::Named entry) {
    entry.permissions |= take_entry(access, entry.is_group, entry.id).value_or(0);
    access.named.push_back(entry);
}

}  // namespace

mode_t FileAccess::mode() const { return of_owner << 6 | mask.value_or(of_group) << 3 | of_others; }

FileAccess FileAccess::of_part() const {
    return changed(*this, [](unsigned permissions) { return permissions & 6U; });
}

FileAccess FileAccess::of_lock() const {
    FileAccess lock =
        changed(*this, [](unsigned permissions) { return (permissions & 2U) != 0 ? permissions & 6U : 0U; });
    lock.of_owner = of_owner & 6U;
    return lock;
}

FileAccess FileAccess::of_folder() const {
    FileAccess folder = changed(*this, with_search);
    folder.of_owner = 7;
    return folder;
}

FileAccess FileAccess::fitted_to(uid_t new_owner, gid_t new_group) const {
    if (new_owner == owner && new_group == group) return *this;
    FileAccess fitted = without_mask(*this);
    if (new_owner != owner) {
        // He has made it, and may give himself what he likes.
        (void)take_entry(fitted, false, new_owner);
        (void)take_entry(fitted, false, owner);
        fitted.of_owner = of_owner | 6U;
        // Where everybody may do what the owner may, he needs no entry.
        const bool needs = (of_owner & ~(fitted.of_group & of_others)) != 0 || !fitted.named.empty();
        if (needs) fitted.named.push_back({false, owner, of_owner});
    }
    if (new_group != group) {
        const unsigned had = fitted.of_group;
        // To the file that this comes from, its members are such as others are; some may be in both groups.
        fitted.of_group = take_entry(fitted, true, new_group).value_or(had & of_others);
        if (had != fitted.of_group || had != of_others) add_entry(fitted, {true, group, had});
    }
    fitted.owner = new_owner;
    fitted.group = new_group;
    return with_mask(std::move(fitted));
}

mode_t FileAccess::mode_without_acl() const {
    const FileAccess plain = without_mask(*this);
    unsigned least = 7;
    for (const Named& entry : plain.named) least &= entry.permissions;
    return plain.of_owner << 6 | (plain.of_group & least) << 3 | (plain.of_others & least);
}

FileAccess FileAccess::narrowed_by(const FileAccess& other) const {
    const mode_t bits = mode_without_acl() & other.mode_without_acl();
    const unsigned of_group_of_both = group == other.group ? bits >> 3 & 7U : (bits >> 3 & bits & 7U);
    return {owner, group, bits >> 6 & 7U, of_group_of_both, bits & 7U};
}

std::string FileAccess::to_attribute() const {
    std::string value(reinterpret_cast<const char*>(&attribute_version), head_bytes);
    const auto add = [&](std::uint16_t tag, unsigned permissions, std::uint32_t id) {
        const auto bits = static_cast<std::uint16_t>(permissions);
        value.append(reinterpret_cast<const char*>(&tag), sizeof tag);
        value.append(reinterpret_cast<const char*>(&bits), sizeof bits);
        value.append(reinterpret_cast<const char*>(&id), sizeof id);
    };
    add(user_object, of_owner, no_id);
    for (const Named& entry : named)
        if (!entry.is_group) add(user, entry.permissions, entry.id);
    add(group_object, of_group, no_id);
    for (const Named& entry : named)
        if (entry.is_group) add(group_tag, entry.permissions, entry.id);
    if (mask) add(mask_tag, *mask, no_id);
    add(other, of_others, no_id);
    return value;
}

bool FileAccess::take_attribute(const std::string& value) {
    std::uint32_t version = 0;
    if (value.size() < head_bytes || (value.size() - head_bytes) % entry_bytes != 0) return false;
    std::memcpy(&version, value.data(), head_bytes);
    if (version != attribute_version) return false;
    mask.reset();
    named.clear();
    for (std::size_t at = head_bytes; at < value.size(); at += entry_bytes) {
        std::uint16_t tag = 0, bits = 0;
        std::uint32_t id = 0;
        std::memcpy(&tag, value.data() + at, sizeof tag);
        std::memcpy(&bits, value.data() + at + 2, sizeof bits);
        std::memcpy(&id, value.data() + at + 4, sizeof id);
        const unsigned permissions = bits & 7U;
        switch (tag) {
            case user_object:
                of_owner = permissions;
                break;
            case group_object:
                of_group = permissions;
                break;
            case other:
                of_others = permissions;
                break;
            case mask_tag:
                mask = permissions;
                break;
            case user:
            case group_tag:
                named.push_back({tag == group_tag, id, permissions});
                break;
            default:
                return false;
        }
    }
    return named.empty() || mask.has_value();
}

FoundAccess access_of(int descriptor) {
    struct stat status{};
    if (raw::fstat(descriptor, &status) != 0) return {errno};
    FileAccess access{status.st_uid, status.st_gid, status.st_mode >> 6 & 7U, status.st_mode >> 3 & 7U,
                      status.st_mode & 7U};
    std::string value;
    if (const int error = get_attribute(descriptor, value); error != 0) return {error};
    if (!value.empty() && !access.take_attribute(value)) return {EIO};
    return {0, std::move(access)};
}

int give_access(int descriptor, const FileAccess& access, bool hands_on_group) {
    struct stat status{};
    if (raw::fstat(descriptor, &status) != 0) return errno;
    const bool is_folder = S_ISDIR(status.st_mode);
    const mode_t kept = !is_folder ? 0 : hands_on_group ? S_ISGID : status.st_mode & S_ISGID;
    const FoundAccess found = access_of(descriptor);
    const bool has_acl = found.error != 0 || found.access.mask.has_value();
    const auto set = [&](const FileAccess& wanted) {
        // Three entries are the same as a mode, and set in one step: the mode alone would only change the mask.
        int error = has_acl || wanted.mask ? set_attribute(descriptor, wanted.to_attribute()) : EOPNOTSUPP;
        if (error == EOPNOTSUPP || error == ENOSYS) return set_mode(descriptor, kept | wanted.mode_without_acl());
        // Before, it would have been what the mask is.
        if (error == 0 && kept != 0) error = set_mode(descriptor, kept | wanted.mode());
        return error;
    };
    if (status.st_uid != access.owner || status.st_gid != access.group) {
        // Between two owners or groups, nobody has what only one of them may give.
        const FileAccess closed{status.st_uid, status.st_gid, status.st_mode >> 6 & 7U, 0, 0};
        if (const int error = set(closed); error != 0) return error;
        if (set_owner(descriptor, access.owner, access.group) != 0 && status.st_gid != access.group)
            (void)set_owner(descriptor, static_cast<uid_t>(-1), access.group);
        if (raw::fstat(descriptor, &status) != 0) return errno;
    }
    return set(access.fitted_to(status.st_uid, status.st_gid));
}

}  // namespace ioweir::guarded
