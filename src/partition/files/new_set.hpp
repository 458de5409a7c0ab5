// A set that is being written: under names of its own, until all of it is there. One process (the first rank) begins and completes it.
// No MPI.
//
// Crash safety. directories: files are written in a hidden directory beside the set's, which gets its name when all are done, in one rename(2); a set
// of that name that is to be replaced changes places with it in one renameat2(2), where the file system can do that. So there is a complete set or none, or the previous one.
// flat: files have names of their own until all are done. Then the manifest says "renaming", each file is renamed, and the manifest says "complete": a job that dies in
// between leaves a set that readers refuse. That is a risk only for a set that is replaced in place, whose old files are gone then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "partition/core/manifest.hpp"
#include "partition/files/names.hpp"

namespace ioweir::partition {

/// `what` of begin()'s error where a set is there.
inline constexpr const char* set_is_there = "a set of that step is there already";

///
/// A set that takes another's place has its files' owners, groups, modes and ACLs, and while it is written it is its writer's alone.
class NewSet {
public:
    /// Makes the place for `files` files, and in the flat layout, if it `replaces`, these themselves, empty. An Error where a set of that name
    /// is there and may not be replaced.
    [[nodiscard]] static Result<NewSet> begin(SetName name, std::int64_t files, bool replaces);

    /// Where file `number`, from 0, is to be written. On any rank: from begin()'s `token`.
    [[nodiscard]] std::string file(std::int64_t number) const { return new_file(name_, token_, number); }
    [[nodiscard]] static std::string new_file(const SetName& name, const std::string& token, std::int64_t number);
    /// 16 hexadecimal digits: of this attempt alone.
    [[nodiscard]] const std::string& token() const { return token_; }

    /// All files are on storage: makes the set visible. Nothing, or why not; then nothing of it is left, or what check() names.
    [[nodiscard]] std::optional<Error> complete(const Manifest& manifest);
    /// Removes what was written.
    void abandon();

private:
    SetName name_;
    std::string token_;
    std::int64_t files_ = 0;
    bool replaces_ = false;

    /// What is to be in the place of something gets its access. An errno value.
    [[nodiscard]] int take_access(std::int64_t number) const;
    [[nodiscard]] int take_access_of_directory() const;
};

/// 16 random hexadecimal digits.
[[nodiscard]] std::string new_token();

/// Unfinished sets of `base`, by path: of jobs that are running, or have died.
[[nodiscard]] std::vector<std::string> unfinished_at(const std::string& base);

}  // namespace ioweir::partition
