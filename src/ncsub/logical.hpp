// What master and subfiles say of each other in their headers, and the header of the one logical file that follows from the master's.
// Attributes are those of PnetCDF's own subfiling (its src/drivers/ncmpio/ncmpio_subfile.c), and `_ioweir.*` for what those cannot say:
// docs/explanation/netcdf-subfiles.md. Pure.
// What does not live here: reading and writing files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ncsub/header.hpp"

namespace ioweir::ncsub {

/// How a variable is divided.
struct Division {
    int dimension = 0;                        ///< index into dimension_ids
    std::vector<std::int64_t> dimension_ids;  ///< of the logical variable
    std::vector<std::int64_t> boundaries;     ///< along that dimension: one more than there are subfiles
    friend bool operator==(const Division&, const Division&) = default;
    [[nodiscard]] std::int64_t subfiles() const { return static_cast<std::int64_t>(boundaries.size()) - 1; }
};

/// The one file that programs see.
struct Logical {
    Header header;
    std::vector<std::optional<Division>> divisions;  ///< one a variable; nothing: it lies in the master
    std::int64_t subfiles = 0;
    std::string id;  ///< that master and subfiles have in common; empty: PnetCDF has written them
    std::vector<std::string> files =
        {};  ///< names of the subfiles beside the master; empty: as subfile_path() makes them
    friend bool operator==(const Logical&, const Logical&) = default;
};

/// Beside the master. The third: the header of the logical file, while it is open.
[[nodiscard]] std::string subfile_path(std::string_view master, std::int64_t number);
[[nodiscard]] std::string logical_path(std::string_view master);
[[nodiscard]] std::string subfile_path(const Logical& logical, std::string_view master, std::int64_t number);

/// The attribute of a master whose subfiles have names of their own.
[[nodiscard]] Attribute files_attribute(const std::vector<std::string>& names);

/// The files as they are to be defined. Dimensions and variables have the ids of the logical file in the master; a divided
/// variable is a scalar there. A subfile has the divided variables alone, in the order of their ids, each with dimensions of
/// its own: `z.cube`, or where that is longer than names may be or taken (a variable may have a dimension twice), `d0.v7` for
/// variable 7. They have the unlimited dimension in common, of which there can be one, and which the first that has records
/// names. Attributes that say how the file is divided stand behind those of the program, which subfiles do not have.
/// Sizes and places (vsize, begin) are not filled in: the library that makes the files does that. The master says that writing has begun.
[[nodiscard]] Header master_of(const Logical& logical);
[[nodiscard]] Header subfile_of(const Logical& logical, std::int64_t number);

/// Whether the job that writes the files is done, as the master says it: `_ioweir.writing`. Both words are equally long, so that one can be
/// written over the other wherever the header lies.
enum class Writing {
    unsaid,  ///< PnetCDF has made the files, or an ioweir that did not say it
    begun,   ///< a job writes them, or has died
    ended
};
[[nodiscard]] Attribute writing_attribute(Writing writing);
[[nodiscard]] Writing writing_of(const Header& master);
/// Makes a header say it that does say something of it.
void set_writing(Header& master, Writing writing);

/// Is this attribute one that only says how a file is divided, and none of the program's?
[[nodiscard]] bool says_division(std::string_view attribute);

/// Does this header say that arrays lie in subfiles?
[[nodiscard]] bool is_master(const Header& header);

/// The logical file of a master. What contradicts itself is an error that names `name`, the variable and the attribute.
[[nodiscard]] Result<Logical> logical_of(const Header& master, std::string_view name);

/// Why a subfile's header is not that of subfile `number` of this file, with words that name `name`; nothing: it is.
[[nodiscard]] std::optional<Error> check_subfile(const Logical& logical, const Header& subfile, std::int64_t number,
                                                 std::string_view name);

}  // namespace ioweir::ncsub
