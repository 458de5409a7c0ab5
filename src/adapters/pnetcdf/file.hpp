// The files that are open: what the program sees as one, and what it consists of.
// What does not live here: opening and closing (open.cpp), definitions (define.cpp), data (access.cpp, exchange.cpp).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/pnetcdf/adapter.hpp"
#include "adapters/pnetcdf/clocks.hpp"
#include "adapters/pnetcdf/library.hpp"
#include "ncsub/core/partition.hpp"
#include "ncsub/logical.hpp"

namespace ioweir::pnetcdf {

/// What was asked for a new file, by plan, environment or hints.
struct SubfileOptions {
    std::int64_t subfiles = 0;
    std::int64_t min_ndims = 0;
    std::optional<int> par_dim_id = {};      ///< for variables that have no attribute of that name
    std::string par_dim;                     ///< the same by the dimension's name
    const policy::FileRule* rule = nullptr;  ///< of the plan: places are found for it
};

/// A subfile that this rank keeps, with the other ranks of its group.
struct Subfile {
    std::int64_t number = 0;
    int ncid = -1;
    int descriptor = -1;  ///< for flushes and begin_read(); -1: none, or another rank of the node has it
};

/// Which variables the program wants filled, as the library says it where define mode ends. The logical file has no data: it is told to fill
/// nothing from then on, until it is defined again.
struct Fills {
    int mode = no_fill;        ///< the file's: of variables that are still to come
    std::vector<bool> wanted;  ///< of each variable
};

/// Bytes as the library counts them: of the variables' types, and of headers.
struct Moved {
    Offset put = 0;
    Offset get = 0;
};

class PendingList;
/// Where the type is known.
struct DropPendingList {
    void operator()(PendingList* list) const;
};

/// One file of the program's. Its ncid is that of a file of its own, which has the logical file's header and no data: so whatever the program
/// asks is answered by the library itself. The data of variables that are not divided are the master's.
struct File {
    const Library* library = nullptr;
    Host host;
    std::string path;            ///< as the program has named it
    std::string folder;          ///< that the program was in then
    std::string header_path;     ///< of the file with the logical header, where it has a name; rank 0 removes it
    int header_descriptor = -1;  ///< else, in memory
    int mode = 0;                ///< as the program gave it
    bool writable = false;
    bool safe = false;  ///< PNETCDF_SAFE_MODE: errors of arguments are all ranks'
    /// Of the last blocking access of all ranks: whether any named a divided variable. The same on all ranks.
    bool named_divided = true;
    // Whether the files say that they are complete (ncsub/writing.hpp):
    bool says_begun = false;      ///< they say that they are not, as long as they are open
    bool says_ended = false;      ///< and they may say at the end that they are: nobody has left them unfinished before
    bool has_mark = false;        ///< ... by a file of its own
    bool lost_data = false;       ///< a call that writes has failed on this rank, not for its arguments
    int writing_descriptor = -1;  ///< of rank 0, with the lock
    int ncid = -1;                ///< the program's: the logical header's
    int master = -1;
    MPI_Comm comm{};
    MPI_Comm group{};
    MPI_Info info{};
    bool has_info = false;
    int rank = 0;
    int ranks = 1;
    SubfileOptions options;
    enum class State : std::uint8_t { define, data, independent };
    State state = State::define;
    bool ended = false;                                                 ///< ncmpi_enddef was called before
    std::function<int(std::int64_t, const std::string&)> make_subfile;  ///< rank 0's, of Places
    bool subfiles_have_places = false;                                  ///< it makes them; the same on all ranks
    int broken = no_error;                ///< an error after which nothing is known of the files any more
    ncsub::Logical logical;               ///< as of the last enddef
    std::optional<ncsub::Header> so_far;  ///< in define mode: dimensions and variables, as far as requests have asked
    Fills fills;
    std::vector<Subfile> subfiles;
    std::vector<int> in_subfile;  ///< of each variable: its id in subfiles; -1: it is not divided

    // Records. In independent mode each rank knows of those that it has written itself, as with the library alone.
    std::int64_t records = 0;     ///< of divided variables
    int unlimited = -1;           ///< the dimension's id
    int record_in_master = -1;    ///< a variable of the master's that has records; -1: there is none
    int record_in_subfiles = -1;  ///< a variable of the subfiles', by its id there
    std::vector<Subfile> alone;   ///< in independent mode: opened by this rank for itself

    /// Non-blocking accesses to variables that are, or may be, divided; null: none was begun yet.
    std::unique_ptr<PendingList, DropPendingList> pending;
    Moved moved;          ///< by this rank's accesses to divided variables
    Moved master_header;  ///< in the master while it was opened and defined
    Clocks clocks;

    [[nodiscard]] bool divided() const { return logical.subfiles > 0; }
    /// There is such a variable, as of the last enddef.
    [[nodiscard]] bool knows(int variable) const {
        return variable >= 0 && variable < static_cast<int>(in_subfile.size());
    }
    [[nodiscard]] bool is_divided(int variable) const {
        return knows(variable) && in_subfile[static_cast<std::size_t>(variable)] >= 0;
    }
    [[nodiscard]] ncsub::Groups groups() const { return {ranks, logical.subfiles}; }
};

/// The least of the ranks' errors, on all of them: 0 where no rank has one. Collective.
[[nodiscard]] int agree(const File& file, int error);

/// The file's path as it is now: its name, or from the root where the program has gone to another folder since then.
[[nodiscard]] std::string path_now(const File& file);

/// Says it once on standard error, on rank 0, and in the trace.
void complain(const File& file, const std::string& text);
/// The same on this rank, whichever it is.
void complain_here(const File& file, const std::string& text);
void note(const File& file, const std::string& text);

// open.cpp. Results are the library's.
/// Nothing: the file is to be created as it is. Collective.
[[nodiscard]] std::optional<int> create_file(const Library& library, const Host& host, const policy::PlanFile& plan,
                                             const Call& call, std::unique_ptr<File>& file);
/// Opens it; where it is a master, `file` is set. Collective.
[[nodiscard]] int open_file(const Library& library, const Host& host, const Call& call, std::unique_ptr<File>& file);
[[nodiscard]] int close_file(File& file, bool abort);
/// Where the master's header is there and says so, it is on the disk before data are. Collective, in data mode.
[[nodiscard]] int begin_writing(File& file);
/// What the library has counted of one of its files, on this rank.
[[nodiscard]] Moved moved_in(const File& file, int ncid);
/// Says in the trace where the time of all ranks went. Collective.
void note_clocks(const File& file);
/// The subfiles of the file that a call of ncmpi_create is about to replace, on rank 0; none on the others.
[[nodiscard]] std::vector<std::string> subfiles_before(const Call& call);
/// Removes them, after their master was.
void remove_subfiles(const std::vector<std::string>& paths);

// define.cpp. Collective.
/// ncmpi_enddef or ncmpi__enddef: `call`'s arguments but for the file are those of the master, too.
[[nodiscard]] int end_define(File& file, const Call& call);
[[nodiscard]] int begin_define(File& file, const Call& call);
/// Adds the dimensions and variables that the logical file has and `header` not yet: their names, lengths, types and
/// places, without attributes.
[[nodiscard]] int describe(const File& file, ncsub::Header& header);
/// Makes the master's names and attributes those of the logical file.
[[nodiscard]] int copy_attributes(const File& file);

// records.cpp
/// Finds the variables that have records, after the logical file was described.
void find_records(File& file);
[[nodiscard]] bool is_record(const File& file, int variable);
/// The records of one of the library's files that has the unlimited dimension, as this rank knows them. 0 or an error.
[[nodiscard]] int records_in(const File& file, int ncid, Offset& records);
/// The length of the unlimited dimension: the most that this rank knows any file of it to have.
[[nodiscard]] std::int64_t records_of(const File& file);
/// Gives the master the records of divided variables. Collective, in data mode; `records` is the same on all ranks.
[[nodiscard]] int keep_records(const File& file);
/// The most records that any rank knows of: on all ranks and in the master. Closes what ranks have opened for themselves, and puts the records
/// of each subfile right, which may be fewer. Collective, in data mode or independent mode.
[[nodiscard]] int settle_records(File& file);

// fill.cpp. Results are the library's.
/// Takes over what the program wants filled, and has nothing filled in the logical file. Collective, in define mode.
[[nodiscard]] int take_fills(File& file);
/// The logical file says again what the program wants filled. Collective, in define mode.
[[nodiscard]] int give_fills(const File& file);
/// What the program wants of a file that has just been opened.
[[nodiscard]] int find_fills(File& file);
/// Has a variable of the master's or a subfile's filled as the program wants it, by the library, where the definition of that file ends.
/// `there`: its id in that file. Collective over the ranks that have the file open, in its define mode.
[[nodiscard]] int define_fill(const File& file, int ncid, int there, int variable);
/// Variables from `first` on are new, and the file has records: fills those that the library had not to fill, for there are none yet in the master
/// or the subfile. Collective, in data mode.
[[nodiscard]] int fill_old_records(const File& file, std::size_t first);
/// ncmpi_fill_var_rec of a divided variable. Collective.
[[nodiscard]] int fill_record(File& file, const Call& call);
/// With PNETCDF_SAFE_MODE: an error on all ranks, where these want different records filled, or of different variables. Collective then.
[[nodiscard]] int same_record_on_all(const File& file, const Call& call);

// alone.cpp
/// Closes the subfiles that this rank has opened for itself. 0 or the first error.
[[nodiscard]] int close_alone(File& file);

// several.cpp
/// ncmpi_mput_* and ncmpi_mget_*: accesses to several variables, divided ones or not. Collective where the call is.
[[nodiscard]] int access_several(File& file, const Call& call);

// data.cpp
/// An access to a divided variable, non-blocking or in independent mode.
[[nodiscard]] int access_variable(File& file, const Call& call);
/// A blocking access of all ranks in data mode, for which each may name another variable, divided or not, or one that
/// there is not. Nothing: the call is for the master, on all ranks. Collective.
[[nodiscard]] std::optional<int> access_together(File& file, const Call& call);
/// A non-blocking access in define mode to a variable that this mode has made: it is kept, as those to divided ones
/// are, and when it is waited for it is known where the variable lies.
[[nodiscard]] int begin_undefined(File& file, const Call& call);
/// ncmpi_wait_all, ncmpi_wait and ncmpi_cancel: the requests of the program are the master's and ours.
[[nodiscard]] int wait_all(File& file, const Call& call);
[[nodiscard]] int wait_alone(File& file, const Call& call);
[[nodiscard]] int cancel(File& file, const Call& call);
/// Accesses to divided variables that are begun.
[[nodiscard]] std::int64_t requests_begun(const File& file);
/// Bytes of the attached buffer that those take (bput).
[[nodiscard]] std::int64_t bytes_buffered(const File& file);
/// Gives up all of them.
void drop_requests(File& file);

}  // namespace ioweir::pnetcdf
