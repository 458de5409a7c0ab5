// Header file: the small text file at a program's path that stands for a logical file whose bytes lie in a directory beside it.
// What does not live here: what is in the directory (directory.hpp, index.hpp), moving bytes (container.hpp).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ioweir::container {

/// How a logical file's bytes are divided.
struct Shape {
    enum class Kind : std::int64_t {
        grouped,   ///< `count` groups of ranks have a file each, in which their bytes lie at their logical offsets
        subfiles,  ///< stripes are dealt round over `count` files
        log,       ///< each writer has a file in which its bytes lie one behind the other; `count` is 0
    };
    std::int64_t count = 1;
    Kind kind = Kind::grouped;
    std::int64_t stripe_bytes = 0;  ///< subfiles only
    friend bool operator==(const Shape&, const Shape&) = default;
};

/// As a plan file and a header file have it: "grouped:4", "log"; "subfiles:8 stripe 1048576" in a header file.
[[nodiscard]] std::string to_text(const Shape& shape);
[[nodiscard]] std::optional<Shape> parse_shape(std::string_view text);

/// Of containers. 3 since everything in one says whose it is; 2 is read, and written where it is there already.
inline constexpr int newest_version = 3;
inline constexpr int oldest_version = 2;

struct HeaderFile {
    std::string id;  ///< 32 hexadecimal digits, drawn at random
    Shape shape;
    int version = newest_version;
    std::optional<uid_t> owner = {};  ///< of the file that it was read from; no part of what it says
    friend bool operator==(const HeaderFile& a, const HeaderFile& b) {
        return a.id == b.id && a.shape == b.shape && a.version == b.version;
    }
};

/// No header file is longer. Short on purpose: a program without ioweir meets the end of the file instead of zeros.
inline constexpr std::int64_t most_header_file_bytes = 512;

/// None is shorter: what can be told without reading it.
inline constexpr std::int64_t least_header_file_bytes = 256;
/// How every version's begins.
inline constexpr std::string_view header_file_beginning = "ioweir container ";

/// The id comes from getrandom(2).
[[nodiscard]] Result<HeaderFile> new_header_file(Shape shape);
[[nodiscard]] std::string to_text(const HeaderFile& header_file);

/// Does a file that begins like this claim to be a header file?
[[nodiscard]] bool looks_like_header_file(std::string_view beginning);
/// Of a header file's whole text.
[[nodiscard]] Result<HeaderFile> parse_header_file(std::string_view text);

/// The header file's own name, where the path is a link's: as realpath() has it. Else, and where it cannot be told, the path.
[[nodiscard]] std::string without_link(const std::string& path);
/// Would removing this name remove the header file? Not if the name is a link's, or if the file has another name.
[[nodiscard]] bool is_only_name(const std::string& path);

/// The directory of a header file's bytes: in the directory of the header file, named by its id, so that renaming the header file loses nothing.
/// A link to the header file leads to it.
[[nodiscard]] std::string directory_of(const std::string& header_file_path, const std::string& id);

/// The header file at a path; nothing when an ordinary file (or none) is there. An Error: a damaged one, or one that cannot be read.
[[nodiscard]] Result<std::optional<HeaderFile>> read_header_file(const std::string& path);
/// The same of an open file; `path` is for the Error.
[[nodiscard]] Result<std::optional<HeaderFile>> read_header_file(int descriptor, const std::string& path);

}  // namespace ioweir::container
