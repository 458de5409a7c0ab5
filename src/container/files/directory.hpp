// Directory: the files of a container and their names.
//
//   .ioweir-ID/about                        for a person, and for whoever looks for orphans: the header file's text and its name
//   .ioweir-ID/open.G, closed.G, replaced.G generation G of writing is under way (or its job has died), is complete, or was never completed
//                                           and is not missed (generations.hpp)
//   .ioweir-ID/whole                        the ordinary file that is to take the header file's place (merge.hpp)
//   .ioweir-ID/atomic, pointer.O            the lock of atomic mode; the shared file pointer of one MPI_File_open (locked_file.hpp)
//   .ioweir-ID/group.N/data                 grouped: whose they are, and the bytes of group N, in the logical file's order
//   .ioweir-ID/group.N/index.G.R            who wrote what of it: rank R in generation G (index.hpp)
//   .ioweir-ID/logs.F/data.G.R, index.G.R   log: the same of each writer, in folder F = R modulo 64, made by the first that needs it
//
// and of subfiles what subfiles.hpp says.
// What does not live here: what the entries mean (index.hpp), moving bytes (container.hpp), begin and end of writing (generations.hpp).
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.hpp"
#include "base/guarded_files.hpp"
#include "base/result.hpp"
#include "container/files/header_file.hpp"
#include "container/index/index.hpp"
#include "container/index/map.hpp"

namespace ioweir::container {

/// In a log container: the file of a writer.
[[nodiscard]] constexpr std::int64_t log_source(std::uint32_t generation, std::uint32_t rank) {
    return static_cast<std::int64_t>(generation) << 32 | rank;
}

/// A log that goes on on another target is a new one, with a number so much above the rank's: as with every rank, modulo the 64 folders of
/// logs it is in the same one, with the same index.
inline constexpr std::uint32_t log_number_step = std::uint32_t{1} << 24;
inline constexpr std::uint32_t most_log_number = UINT32_MAX;

/// The descriptor by which a container's files are opened, for all copies of a Directory.
struct OpenedFolder {
    std::mutex lock;
    std::shared_ptr<const guarded::Folder> folder;  ///< null: not yet
};

struct Directory {
    std::string path;
    Shape shape;
    int version = newest_version;  ///< of the header file, and so of everything in it
    /// Of the header file that names it; nothing: it was found without one, or is new.
    std::optional<uid_t> header_file_owner = {};
    std::shared_ptr<OpenedFolder> held = std::make_shared<OpenedFolder>();

    /// Its folder, opened the first time. Files in it are named by the functions below that end in _name. An Error: it is not there, is no
    /// folder, or belongs to somebody else than its header file: a header file that somebody has copied must not lead to another's bytes.
    [[nodiscard]] Result<std::shared_ptr<const guarded::Folder>> opened() const;
    /// Asks `question` of its folder, which may be done within calls that move data: no system call besides those of the question. For what
    /// makes, changes and removes nothing.
    [[nodiscard]] Result<std::int64_t> look(FunctionRef<Result<std::int64_t>(const guarded::Folder&)> question) const;

    /// Of the container: 32 hexadecimal digits.
    [[nodiscard]] std::string id() const { return path.substr(path.rfind(".ioweir-") + 8); }
    /// What each batch of its indexes says to be of.
    [[nodiscard]] Identity identity() const;
    /// Place 0 of a group's file lies there: behind its header, and so far behind it that what is aligned in the logical file is so here.
    /// In a log, places are where bytes lie.
    [[nodiscard]] std::int64_t data_begin() const {
        return shape.kind == Shape::Kind::grouped && version >= 3 ? std::int64_t{1} << 20 : 0;
    }
    /// Of a source's data and its indexes: "group.2", "group.2/data", "group.2/index.7.3".
    [[nodiscard]] std::string folder_name(std::int64_t source) const;
    [[nodiscard]] std::string data_name(std::int64_t source) const;
    [[nodiscard]] std::string index_name(std::int64_t source, std::uint32_t generation, std::uint32_t rank) const {
        return folder_name(source) + "/index." + std::to_string(generation) + "." + std::to_string(rank);
    }
    /// For messages.
    [[nodiscard]] std::string path_of(const std::string& name) const { return path + "/" + name; }
    [[nodiscard]] std::string data(std::int64_t source) const { return path_of(data_name(source)); }
    [[nodiscard]] std::string index(std::int64_t source, std::uint32_t generation, std::uint32_t rank) const {
        return path_of(index_name(source, generation, rank));
    }
    [[nodiscard]] bool is_log() const { return shape.kind == Shape::Kind::log; }
    [[nodiscard]] bool has_index() const { return shape.kind != Shape::Kind::subfiles; }
};

[[nodiscard]] Directory directory_of(const std::string& header_file_path, const HeaderFile& header_file);

/// Makes the directory, and the folders of groups, all empty, as open as the file that is to be the header file (a descriptor; -1: there is none, and
/// they are as the umask says). Returns an errno value; what it has made is removed again after an error.
[[nodiscard]] int make(const Directory& directory, const std::string& header_file_path, const HeaderFile& header_file,
                       int header_file_descriptor = -1);
/// Removes the directory with all that a container has in it, and its parts on storage targets. An errno value; EXDEV: these may be those of
/// another directory (origin.hpp), and nothing was removed.
int remove(const Directory& directory);

/// Generations that were begun and not ended: jobs that still write, or that have died (generations.hpp).
[[nodiscard]] Result<std::vector<std::uint32_t>> open_generations(const Directory& directory);

/// The file of a group's or log's bytes, wherever it lies (placed_log.hpp). `flags` as of guarded::Folder::file(). What it says it is, is for
/// the caller to look at (data_header.hpp).
[[nodiscard]] Result<guarded::File> open_data(const Directory& directory, std::int64_t source, int flags = O_RDONLY);

/// By its name: one that is locked (sharing/locked_file.hpp).
[[nodiscard]] inline bool is_locked_file(std::string_view name) {
    return name == "atomic" || name.starts_with("pointer.");
}

/// Names in a folder of the container ("": the directory itself). An Error names it.
[[nodiscard]] Result<std::vector<std::string>> names_in(const Directory& directory, const std::string& folder = {});
/// The number that a name ends with, if `prefix` and a number is all of it.
[[nodiscard]] std::optional<std::uint32_t> number_after(std::string_view name, std::string_view prefix);

/// Whose file it is: "index.7.3" after "index." is that of rank 3 in generation 7.
struct FileWriter {
    std::uint32_t generation = 0;
    std::uint32_t rank = 0;
};
[[nodiscard]] std::optional<FileWriter> writer_after(std::string_view name, std::string_view prefix);

/// "data.7.3" of a log; nothing: it is no name of one.
[[nodiscard]] std::optional<std::int64_t> source_of_log(std::string_view name);

/// Names of the folders of data and indexes: of groups those that should be there, of logs those that are, none of subfiles.
[[nodiscard]] Result<std::vector<std::string>> folders(const Directory& directory);
/// So that a rank can make its log in it: many ranks, but no rank for all of them. An errno value; that it is there already is no error.
[[nodiscard]] int make_folder_of_log(const Directory& directory, std::int64_t source);

/// An index file by its place.
struct IndexFile {
    std::string name;
    std::uint32_t generation = 0;
    std::uint32_t rank = 0;
};
/// All of them. An Error names the folder that cannot be read.
[[nodiscard]] Result<std::vector<IndexFile>> index_files(const Directory& directory);

/// What an index has, batch by batch: one that a writer has spread over the whole file may be large.
struct Walked {
    std::int64_t bytes = 0;
    std::string damage;    ///< empty: none
    bool foreign = false;  ///< it is a batch of another container
};
/// An Error: it cannot be read.
[[nodiscard]] Result<Walked> walk_index(const Directory& directory, const IndexFile& file,
                                        FunctionRef<void(Batch)> visitor);

/// The latest generation that names of indexes and logs tell of, and a file of it; 0: there is none.
struct Named {
    std::uint32_t generation = 0;
    std::string name;
};
/// An Error names the folder that cannot be read.
[[nodiscard]] Result<Named> last_named(const Directory& directory);

struct Indexes {
    LogicalMap map;
    Stamp last = 0;  ///< the largest in them
    std::vector<std::uint32_t>
        open;  ///< generations that were never ended: what they wrote after their last sync is not there
    std::vector<std::string> torn;  ///< files of those in which the last batch is torn: what came before it is in `map`
};
/// All indexes. Damage to what was complete is an Error that names the file; the directory or a group's folder missing, too.
[[nodiscard]] Result<Indexes> read_indexes(const Directory& directory);

/// Of the logical file: with groups as far as the longest of their files goes. An Error names the one that is missing.
/// With logs all indexes are read.
[[nodiscard]] Result<std::int64_t> length(const Directory& directory);
/// Grouped: makes every group's file at most (`grow`: the first group's at least) so long. An errno value.
int set_length(const Directory& directory, std::int64_t bytes, bool grow);

/// A part that should be there is not, or cannot be used.
[[nodiscard]] Error missing(const std::string& path, int error);
[[nodiscard]] Error missing(const std::string& path, const Error& why);

}  // namespace ioweir::container
