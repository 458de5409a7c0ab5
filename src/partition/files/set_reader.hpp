// Reads a set of partitioned files, ioweir's or PHASTA's own, and single files of it. No MPI: each rank reads for itself what it needs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "partition/core/block_header.hpp"
#include "partition/core/manifest.hpp"
#include "partition/core/master_header.hpp"
#include "partition/files/names.hpp"
#include "partition/files/posix_file.hpp"

namespace ioweir::partition {

/// One file: its header and its table, checked; blocks are read when asked for.
class PartFile {
public:
    [[nodiscard]] static Result<PartFile> open(const std::string& path);
    [[nodiscard]] const MasterHeader& header() const { return header_; }
    [[nodiscard]] std::int64_t length() const { return length_; }
    /// Of the first bytes, through the table, as in a manifest.
    [[nodiscard]] std::uint64_t header_checksum() const { return header_checksum_; }
    /// Where the items of a part (from 0 in this file) lie. An Error: it was not written, or is damaged.
    struct Block {
        BlockHeader header;
        std::int64_t items_at = 0;
    };
    [[nodiscard]] Result<Block> block(std::int64_t field, std::int64_t part) const;
    /// Into `data`, of block.header.bytes; items of `item_bytes` are turned to this machine's byte order.
    [[nodiscard]] std::optional<Error> read(const Block& block, void* data, std::int64_t item_bytes) const;
    /// Items that were read from it by other means, to this machine's byte order.
    void turn(void* data, std::int64_t bytes, std::int64_t item_bytes) const;
    /// Bytes [begin, begin + bytes) of the items, which has them, as they are in the file.
    [[nodiscard]] std::optional<Error> read_some(const Block& block, std::int64_t begin, void* data,
                                                 std::int64_t bytes) const;
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
    PosixFile file_;
    std::int64_t length_ = 0;
    MasterHeader header_;
    std::vector<std::vector<std::uint64_t>> offsets_;
    std::uint64_t header_checksum_ = 0;
};

/// `what` of errors that say that something is not there, rather than damaged.
inline constexpr const char* no_set = "no set of that step";
inline constexpr const char* no_complete_set = "no complete set";
inline constexpr const char* no_field = "no such field";
inline constexpr const char* no_part = "no such part";

class SetReader {
public:
    /// What another process has found by open(); nothing is read.
    SetReader(SetName name, bool has_manifest, Manifest manifest, std::vector<std::string> fields);
    /// ioweir's set of that step, in either layout; or PHASTA's files without a manifest, where all that are there are of one kind. An Error
    /// where the set is not complete, or is none.
    [[nodiscard]] static Result<SetReader> open(const std::string& base, std::int64_t step);
    /// The last step at `base` that open() takes. An Error names what is wrong with the others, or that there is none.
    [[nodiscard]] static Result<std::int64_t> last_step(const std::string& base);

    [[nodiscard]] const std::vector<std::string>& fields() const { return fields_; }
    [[nodiscard]] const Manifest& manifest() const { return manifest_; }
    [[nodiscard]] const SetName& name() const { return name_; }
    [[nodiscard]] bool has_manifest() const { return has_manifest_; }

    /// The file of a part (from 0), open; it stays so.
    struct Found {
        PartFile* file = nullptr;
        std::int64_t part = 0;  ///< in the file
    };
    [[nodiscard]] Result<Found> find(std::int64_t part);
    /// What a block says of itself, and where it is. `part` from 0.
    [[nodiscard]] Result<PartFile::Block> block(const std::string& field, std::int64_t part);
    /// The same, whose items have `bytes`.
    [[nodiscard]] Result<PartFile::Block> sized_block(const std::string& field, std::int64_t part, std::int64_t bytes);
    [[nodiscard]] std::optional<Error> read(const std::string& field, std::int64_t part, void* data, std::int64_t bytes,
                                            std::int64_t item_bytes);

private:
    SetReader() = default;
    [[nodiscard]] Result<PartFile*> file(std::int64_t number);
    [[nodiscard]] std::optional<Error> take_phasta_files();

    SetName name_;
    bool has_manifest_ = false;
    Manifest manifest_;
    std::vector<std::string> fields_;
    std::map<std::int64_t, PartFile> open_;
};

/// Everything that is wrong with a set, file by file and block by block; empty: nothing.
[[nodiscard]] std::vector<std::string> check_set(const std::string& base, std::int64_t step);

}  // namespace ioweir::partition
