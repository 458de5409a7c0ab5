// HeaderFileLock: keeps jobs apart that are about to make a container of the same header file, or to change where its bytes go.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "container/sharing/locks.hpp"

namespace ioweir::engine {

/// Of the header file behind a descriptor that is open for writing; goes with the descriptor or at the end. Handles of one process that share a
/// descriptor do not keep each other out.
///
/// Other jobs are waited for, which hold it for moments, and not those who could keep everybody waiting: whoever may read the file can lock it, and
/// so may the program itself.
class HeaderFileLock {
public:
    HeaderFileLock(int descriptor, const std::string& path,
                   std::chrono::milliseconds patience = container::HeaderFileLock::patience);
    ~HeaderFileLock();
    HeaderFileLock(const HeaderFileLock&) = delete;
    HeaderFileLock& operator=(const HeaderFileLock&) = delete;

    /// Why other jobs may go on at the same time: somebody else has had a lock for longer than `patience`. Nothing: they do not, or the file system
    /// has no locks, where jobs that begin at once are on their own.
    [[nodiscard]] const std::optional<Error>& problem() const { return problem_; }

private:
    const int descriptor_;
    std::optional<Error> problem_;
};

}  // namespace ioweir::engine
