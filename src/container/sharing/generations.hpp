// Generations: each job (or handle) that opens a container for writing is one, with a number of its own. Whoever comes later can tell
// whether it is done, whether its job still lives, and begins above the stamps that it has left.
// What does not live here: what it wrote (index.hpp), what later ones have written over (replaced.hpp).
//
// Of a generation there is one file in the directory:
//   open.G      it was begun. Its first rank holds a lock of the file; without one, its job has died. A text in it says that somebody
//               has seen that, and from which generation on all are later than anything that it wrote (dead_before())
//   closed.G    it was ended, and others before it whose files this one has replaced
//   replaced.G  its job has died, and later ones have written all bytes of the file
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "container/files/directory.hpp"
#include "container/index/clock.hpp"

namespace ioweir::container {

/// The lock of an open.G, flock(2): ends with the process that has begun the generation, however that ends.
class GenerationLock {
public:
    explicit GenerationLock(int descriptor);
    ~GenerationLock();
    GenerationLock(const GenerationLock&) = delete;
    GenerationLock& operator=(const GenerationLock&) = delete;

private:
    const int descriptor_;
    struct stat status_{};  ///< of its file
};

struct Generation {
    std::uint32_t number = 0;
    Stamp after = 0;  ///< the largest stamp that was there
    std::shared_ptr<const GenerationLock>
        lock;                 ///< to be kept until it is ended; else it is taken for one that has died
    bool after_dead = false;  ///< others have died before it, and not all of their bytes were replaced
};

/// The next generation of writing, for this caller alone, also when several processes ask at once. An Error, besides the directory's: there
/// are indexes or logs of a generation of which nothing says that it was begun, and this one would write over them; not looked for where
/// the caller has just made the directory (`is_new`).
[[nodiscard]] Result<Generation> begin_generation(const Directory& directory, bool is_new = false);
/// What is left of index files: how many, and their bytes. So that one that is gone later, or shorter, is missed.
/// Sums only, so that those of ranks and generations add up; the last five (modulo 2^64) tell which one is missed, if it is only one.
struct Left {
    std::int64_t files = 0;
    std::int64_t bytes = 0;
    std::uint64_t generations = 0, ranks = 0;            ///< of each file's name
    std::uint64_t generation_bytes = 0, rank_bytes = 0;  ///< of each file, these times its bytes
    std::uint64_t mixed = 0;                             ///< of each file, a hash of its name times (its bytes + 1)

    /// What a single file is.
    [[nodiscard]] static Left of(std::uint32_t generation, std::uint32_t rank, std::int64_t bytes);
    Left& operator+=(const Left& other);
    [[nodiscard]] Left operator-(const Left& other) const;
    struct Writer {
        std::uint32_t generation = 0;
        std::uint32_t rank = 0;
    };
    /// Of a difference: whose file it is, if one file or bytes of one file are all of it. Version 2 did not say.
    [[nodiscard]] std::optional<Writer> only_one() const;
    friend bool operator==(const Left&, const Left&) = default;
};

/// All of its indexes are written, those of all ranks together are `left`, and no stamp in them is above `last`. An errno value.
int end_generation(const Directory& directory, std::uint32_t generation, Stamp last, Left left);

/// Is the job of a generation that was not ended still there? Where the file system has no locks, nobody can tell.
enum class Life { alive, dead, unknown };
[[nodiscard]] Life life_of(const Directory& directory, std::uint32_t generation);
/// The first generation that was begun when somebody knew that this one was dead: it and those after it are later than all that this one
/// wrote. Nothing: nobody has seen it dead.
[[nodiscard]] std::optional<std::uint32_t> dead_before(const Directory& directory, std::uint32_t generation);
/// It is not missed any more (replaced.hpp). An errno value.
int put_aside(const Directory& directory, std::uint32_t generation);

/// Nothing was written in it, and no file has its number: as if it had not been begun. An errno value.
int forget_generation(const Directory& directory, std::uint32_t generation);

/// The generations at one time.
struct Generations {
    std::vector<std::uint32_t> open;      ///< begun and not ended: jobs that still write, or that have died; rising
    std::vector<std::uint32_t> replaced;  ///< not ended either, but nothing of them is missing; rising
    Left left;                            ///< of all that were ended
    std::uint32_t last = 0;               ///< the largest number
    bool ended = false;                   ///< one was, at least

    /// Nobody writes but this generation (0: nobody at all).
    [[nodiscard]] bool only(std::uint32_t own) const {
        return open.empty() || (own != 0 && open.size() == 1 && open.front() == own);
    }
    [[nodiscard]] bool was_ended(std::uint32_t number) const;
    friend bool operator==(const Generations&, const Generations&) = default;
};
/// An Error: the directory is not there, or what an ended generation has left is damaged.
[[nodiscard]] Result<Generations> generations_in(const Directory& directory);

/// The largest stamp that is there in indexes or that ended generations have left. Generations in `own` are left out: whoever asks knows
/// theirs.
[[nodiscard]] Result<Stamp> largest_stamp(const Directory& directory, std::span<const std::uint32_t> own);

}  // namespace ioweir::container
