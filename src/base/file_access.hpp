// FileAccess: who may use a file, its owner, group, mode and POSIX ACL together: read from one file, given to others that hold its bytes.
//
// What is given away never lets anybody do more than the file that it comes from. Where the kernel does not let the caller give a file to
// that owner or group, the owner gets an entry of the ACL (his bytes are not lost), and the group what others have.
// What does not live here: which file has its access from which (container, ncsub, partition).
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ioweir::guarded {

struct FileAccess {
    /// An entry of the ACL; `permissions` are as in one digit of a mode.
    struct Named {
        bool is_group = false;
        std::uint32_t id = 0;
        unsigned permissions = 0;
        friend bool operator==(const Named&, const Named&) = default;
    };
    uid_t owner = 0;
    gid_t group = 0;
    unsigned of_owner = 0, of_group = 0, of_others = 0;
    std::optional<unsigned> mask =
        {};  ///< what named ones and the group have at most; always there where there are named ones
    std::vector<Named> named = {};  ///< in the kernel's order: users, groups, each by number

    friend bool operator==(const FileAccess&, const FileAccess&) = default;

    /// The nine bits as stat(2) shows them.
    [[nodiscard]] mode_t mode() const;
    /// The same of a file with its bytes: nobody executes it.
    [[nodiscard]] FileAccess of_part() const;
    /// The same of a file that keeps such users apart who write: a lock for reading keeps them waiting, too, and whoever may not write the bytes
    /// may not take one. The owner may in any case.
    [[nodiscard]] FileAccess of_lock() const;
    /// The same of a folder of such files: who may read or write them may pass, and the owner may always clear it.
    [[nodiscard]] FileAccess of_folder() const;
    /// The same where the kernel has made it another's: see above.
    [[nodiscard]] FileAccess fitted_to(uid_t owner, gid_t group) const;
    /// The nine bits that, without an ACL, let nobody do more.
    [[nodiscard]] mode_t mode_without_acl() const;
    /// Lets nobody do more than either does.
    [[nodiscard]] FileAccess narrowed_by(const FileAccess& other) const;

    /// The extended attribute system.posix_acl_access of it.
    [[nodiscard]] std::string to_attribute() const;
    /// Takes mask and entries from the attribute's value. False: it is none.
    [[nodiscard]] bool take_attribute(const std::string& value);
};

/// Of what a descriptor has open, also one of O_PATH; an errno value where it cannot be told.
struct FoundAccess {
    int error = 0;
    FileAccess access = {};
};
[[nodiscard]] FoundAccess access_of(int descriptor);

/// Makes what a descriptor has open (also one of O_PATH) accessible so, as far as the caller may: an errno value where its mode cannot be
/// changed, and then nothing has become more open. `hands_on_group`: of a folder, what is made in it gets its group; else that stays as it is.
int give_access(int descriptor, const FileAccess& access, bool hands_on_group = true);

}  // namespace ioweir::guarded
