// Subfiles: stripes of the logical file dealt round over N files, each with its stripes one behind the other. Where a byte lies is
// arithmetic; what each file is, and where, is written down so that none can be taken for another.
//
//   .ioweir-ID/places          in which directories they are, dealt round: one a line; and from which stripe on others are
//   .ioweir-ID/sizes           how long each was when writing was last ended
//   PLACE/.ioweir-ID.subfile.K its first 4096 bytes say which one it is, then its stripes
//
// What does not live here: moving bytes (striped.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "container/files/directory.hpp"
#include "storage/backend.hpp"
#include "storage/targets.hpp"

namespace ioweir::container {

/// Of each subfile, before its bytes.
inline constexpr std::int64_t subfile_header_bytes = 4096;

/// Where bytes of the logical file lie.
struct Spot {
    std::int64_t file = 0;   ///< number of the subfile
    std::int64_t place = 0;  ///< in its bytes, after the header
    std::int64_t bytes = 0;  ///< from there to the end of the stripe
};
[[nodiscard]] Spot spot_of(const Shape& shape, std::int64_t offset);
/// Bytes, after the header, of subfile `file` that a logical file of `bytes` has.
[[nodiscard]] std::int64_t bytes_in(const Shape& shape, std::int64_t file, std::int64_t bytes);
/// How long the logical file is at least, when subfile `file` has that many bytes after its header.
/// INT64_MAX: further than a file can be long.
[[nodiscard]] std::int64_t reach_of(const Shape& shape, std::int64_t file, std::int64_t bytes);

/// Stripes from `first_stripe` on, as far as the next division, are dealt round over `count` subfiles from number `first_file` on.
struct Division {
    std::int64_t first_stripe = 0;
    std::int64_t first_file = 0;
    std::int64_t count = 1;
    friend bool operator==(const Division&, const Division&) = default;
};

/// The subfiles of a container, by number, and which stripes they have. The first division is that of the header file; later ones are of stripes
/// that nobody had written when they were made, and their subfiles are new: who does not know of them finds nothing there yet.
struct Subfiles {
    std::vector<std::string> paths;
    std::vector<Division> divisions = {};  ///< by rising stripe, the first from 0
    std::int64_t stripe_bytes = 1;

    [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(paths.size()); }
    [[nodiscard]] const std::string& path(std::int64_t number) const { return paths[static_cast<std::size_t>(number)]; }
    /// As the functions of a shape above, for all divisions.
    [[nodiscard]] Spot spot_of(std::int64_t offset) const;
    [[nodiscard]] std::int64_t bytes_in(std::int64_t file, std::int64_t bytes) const;
    [[nodiscard]] std::int64_t reach_of(std::int64_t file, std::int64_t bytes) const;

private:
    struct Part {
        Shape shape;
        std::int64_t begin = 0, end = 0;  ///< logical bytes
        std::int64_t first_file = 0;
    };
    [[nodiscard]] Part part(std::size_t division) const;
    [[nodiscard]] Part part_of(std::int64_t file) const;
};

/// Makes a new file at the path of a subfile, where storage has to be told on which target, closed to all others
/// (it gets the container's access afterwards): a descriptor, or an errno value.
using SubfileMaker = std::function<storage::Opened(std::int64_t number, const std::string& path)>;

/// Makes them, each with its header and no bytes; `places` are directories, none for the container's own. `make`: how the files are made,
/// if not just by opening them. An Error names the place that cannot be used; what was made is removed again.
[[nodiscard]] Result<Subfiles> make_subfiles(const Directory& directory, const std::vector<std::string>& places,
                                             const SubfileMaker& make = {});
/// As make_subfiles() has written them down.
[[nodiscard]] Result<Subfiles> read_subfiles(const Directory& directory);
/// From `first_stripe` on, where nobody has written yet, stripes go to new subfiles, one beside each of `files` (numbers of subfiles). For one
/// caller at a time, who knows that no other handle writes. A crash in between leaves the old division, and a file that nobody knows of. An
/// Error: nothing has changed.
[[nodiscard]] Result<Subfiles> redivide(const Directory& directory, const Subfiles& now, std::int64_t first_stripe,
                                        const std::vector<std::int64_t>& files, const SubfileMaker& make = {});
/// Wherever it lies: of the owner of the container, or of those whom its group's permissions let write. What it says it is, is for the
/// caller to look at (why_not_subfile()).
[[nodiscard]] Result<guarded::File> open_subfile(const Directory& directory, const Subfiles& subfiles,
                                                 std::int64_t number, int flags = O_RDONLY);
/// For redivide() where storage chooses a target when a file is made: each new subfile on the target of the one of `files` that it goes on
/// for. All three must outlive it.
[[nodiscard]] SubfileMaker make_beside(const Subfiles& now, const std::vector<std::int64_t>& files,
                                       storage::Targets& targets);
/// Tells one state of `places` from another, cheaply; 0: it cannot be looked at.
[[nodiscard]] std::uint64_t places_mark(const Directory& directory);
/// Removes them, those in other directories only if `elsewhere`. An errno value; EPERM: one is not this container's, and stays.
int remove_subfiles(const Directory& directory, bool elsewhere = true);

/// Does the file behind a descriptor say that it is that subfile? What is wrong, else empty.
[[nodiscard]] std::string why_not_subfile(const Directory& directory, int descriptor, std::int64_t number);

/// Of the logical file: as long as its subfiles reach. An Error names the one that is missing.
[[nodiscard]] Result<std::int64_t> length(const Directory& directory, const Subfiles& subfiles);
/// An errno value.
int set_length(const Directory& directory, const Subfiles& subfiles, std::int64_t bytes);

/// Writes down how long each is, at the end of a generation. An errno value.
int keep_sizes(const Directory& directory, const Subfiles& subfiles, std::uint32_t generation);
/// They are about to become shorter. An errno value.
int forget_sizes(const Directory& directory);
/// Every subfile: is it there, the one that it should be, and, while nobody writes but generation `own` (0: none), as long as it was? Is
/// what says so there? What is wrong with each.
[[nodiscard]] std::vector<std::string> problems_of(const Directory& directory, const Subfiles& subfiles,
                                                   std::uint32_t own = 0);

}  // namespace ioweir::container
