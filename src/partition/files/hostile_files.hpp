// What the fuzzer of partitioned files and the property test share: reads everything that files have, whatever their bytes are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ioweir::partition {

/// Reads a file with these bytes as one of a set's, as PHASTA's set of one file, as a serial file, and as a manifest: each returns or says an Error. Aborts where what is handed
/// out does not fit into the file, or a conversion takes what check_set() refuses. `folder`: for the file; nothing is left in it.
/// What came out, as text that does not depend on the folder: equal bytes give equal text.
[[nodiscard]] std::string read_hostile(const std::string& folder, const std::string& bytes);

/// What is done with a file besides reading it.
struct HostileFile {
    bool is_set = false;    ///< the first of set `folder`/run; else a serial file
    bool checks = true;     ///< of a set: check_set() must say the same, which reads it once more
    bool converts = false;  ///< to serial files in `folder`, which takes longer and leaves them there
};
/// The same of a file of `length` bytes that is there.
[[nodiscard]] std::string read_hostile_file(const std::string& folder, const std::string& path, std::int64_t length,
                                            const HostileFile& how);

}  // namespace ioweir::partition
