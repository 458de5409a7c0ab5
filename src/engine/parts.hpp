// The parts of the engine as they call each other. Every function here is entered from a hook (hooks.cpp) or from shut_down().
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/function_ref.hpp"
#include "engine/state.hpp"
#include "exchange/direct.hpp"

namespace ioweir::engine {

// open.cpp: whose file is it?
int open_file(Engine& engine, MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh);
int close_file(Engine& engine, MPI_File* fh);
/// The real MPI_File_delete, and what it takes along.
[[nodiscard]] int delete_file(Engine& engine, const char* filename, MPI_Info info);

// striping.cpp: asks the file system how the file is striped, and for what the plan or the program wants of a new one. Collective over
// the handle's group. Where neither says a stripe's size, the file system's is used.
void adopt_striping(Engine& engine, Handle& handle);

// view.cpp: can the view be followed?
int set_view(Engine& engine, MPI_File fh, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
             const char* datarep, MPI_Info info);

// call.cpp: reads and writes.
enum class Direction { read, write };
struct Call {
    MPI_File fh{};
    Direction direction = Direction::read;
    bool explicit_offset = false;
    MPI_Offset offset = 0;  ///< in etypes, if explicit
    void* buffer = nullptr;
    MPI_Count count = 0;
    MPI_Datatype datatype{};
    MPI_Status* status = nullptr;
    bool collective = false;  ///< every rank of the file makes it, and each stays in it until its own data are moved
    bool shared = false;      ///< its offset is from the shared file pointer
    bool raises = true;       ///< an error goes to the file's error handler at once; else the caller sees to it
    bool blocks = false;      ///< nothing else of the program goes on meanwhile: its time can be compared (turns.cpp)
};
/// Bytes of its memory type, as often as it says; 0 where the arguments are faulty.
[[nodiscard]] std::int64_t bytes_asked(const Call& call);
/// Finds the engine's descriptor again if the program has closed it along with others.
[[nodiscard]] bool descriptor_is_usable(Engine& engine, Handle& handle);
/// `same` is the real function, which may be collective; `independent` its form that needs no other rank.
int transfer(Engine& engine, Handle& handle, const Call& call, FunctionRef<int()> same, FunctionRef<int()> independent);
/// The same for blocking calls, by whoever is faster at them, where the handle has choices.
int transfer_in_turns(Engine& engine, Handle& handle, Call call, FunctionRef<int()> same,
                      FunctionRef<int()> independent);
/// How many etypes of the view the call would move, whatever its offset; -1: transfer() will not have the engine move it. Needs no other
/// rank.
[[nodiscard]] std::int64_t etypes_wanted(Engine& engine, Handle& handle, Call call);

// one_piece.cpp: a call that this rank carries out by itself, and whose bytes lie together in memory and in the file.
/// To be called whenever something changes that `Handle::lean` depends on.
void judge_lean(const Engine& engine, Handle& handle);
/// A collective call in which, as all ranks of the handle's team know, each moves its own bytes; and one that was made so.
[[nodiscard]] bool chooses_alone(const Handle& handle, bool writes);
void count_alone(Handle& handle, bool writes);
/// The call's result; nothing where it is not such a call, or not a lean handle: then nothing has been done.
[[nodiscard]] std::optional<int> move_one_piece(Engine& engine, Handle& handle, const Call& call);

// turns.cpp: whether the engine is to make calls under `auto`, or the MPI library; and who would be faster.
/// By what this process knows; all ranks of a file must.
[[nodiscard]] bool may_take_turns(const Engine& engine);
/// When an engaged handle has been opened whose ranks all may; by all of them.
void begin_turns(Engine& engine, Handle& handle, std::int64_t rule_line);
/// An independent call of so many bytes, whose result is given where it was made. `real` is the library's.
[[nodiscard]] std::optional<int> take_turn_alone(Engine& engine, Handle& handle, const Call& call, std::int64_t bytes,
                                                 FunctionRef<int()> by_engine, FunctionRef<int()> real);
/// Collective: nobody comes out of it before all are in it. The library's ranks spin while they wait, which is best where each has a
/// processor; where they share some, the others' are asleep.
void meet(const Handle& handle);
/// Collective: the least and the most that any rank says.
[[nodiscard]] exchange::Group::Range range_of_all(const Handle& handle, exchange::Group::Range mine);
/// A call of an engaged handle by the library's `real`. Ranks come out of a collective write together.
int by_library(Engine& engine, Handle& handle, const Call& call, FunctionRef<int()> real);
/// For the report.
void note_turns(const Engine& engine, const Handle& handle);

// in_portions.cpp: a blocking collective call of a file on which alternatives are compared (choice/portions.hpp). `same` and `independent`
// are the real functions, as for transfer(), for a call that they are given.
int transfer_in_portions(Engine& engine, Handle& handle, const Call& call, FunctionRef<int(const Call&)> same,
                         FunctionRef<int(const Call&)> independent);
/// An independent call on such a file, which the library makes as long as it has the rest of collective ones.
[[nodiscard]] bool is_librarys_alone(const Handle& handle, const Call& call);

// split.cpp and nonblocking.cpp: put their calls into `hooks`, where the real library has them.
void hook_split_collectives(const mpi::FileCalls& below, mpi::FileCalls& hooks);
void hook_nonblocking_calls(const mpi::FileCalls& below, mpi::FileCalls& hooks);
/// A split collective: the whole of `call`, and what came of it. `alone` is the real blocking form for one rank.
int begin_split(Handle& handle, SplitCollective::Kind kind, Call call, FunctionRef<int()> real,
                FunctionRef<int(MPI_Status*)> alone);
inline constexpr const char* second_split = "a split collective while another one is under way";
int end_split(Handle& handle, SplitCollective::Kind kind, MPI_File fh, MPI_Status* status, FunctionRef<int()> real);
/// The whole of `call`, and a request that is complete.
int start_nonblocking(Handle& handle, Call call, MPI_Request* request, FunctionRef<int()> same,
                      FunctionRef<int()> alone);

// shared_calls.cpp: calls by the shared file pointer. Those of containers are the engine's, others are the MPI library's and counted.
void hook_shared_calls(const mpi::FileCalls& below, mpi::FileCalls& hooks);

// errors.cpp: what went wrong, and who has been told.
[[nodiscard]] int error_class(int error);  ///< MPI's class for an errno value
int raise(MPI_File fh, int error_class);   ///< calls the file's error handler, unless it is no error; gives the class
/// This rank's program has been told or will be before the next agreement; the other ranks have not.
void remember_error(Handle& handle, int error_class);
/// Not even this rank's program has been told, and will be by the next agreement.
void owe_error(Handle& handle, int error_class);
/// Collective over the handle's group; gives the file the length that the handle has said. What this rank still has to return: a
/// failure of its own of which its program does not know, or else the class of one on another rank since the last agreement, if
/// its own program has not been told of any.
[[nodiscard]] int agree_on_errors(Engine& engine, Handle& handle);
int sync_file(Engine& engine, MPI_File fh);

// behind.cpp: write-behind, and whatever could observe that bytes wait.
/// Collective over `comm`, once the file is the engine's. Without success each rank writes its bytes itself; rank 0 says why.
void begin_behind(Engine& engine, Handle& handle, MPI_Comm comm, bool visible_at_sync);
/// Adds what the queue counted to the handle's totals; once.
void count_behind(Handle& handle);
/// After the real close, when all ranks have drained.
void end_behind(Engine& engine, Handle& handle);
/// Are these to be handed over? If not, nothing of this rank waits any more, so that it may write them itself.
[[nodiscard]] bool hands_over(Handle& handle, std::int64_t bytes);
/// This rank's bytes of the handle; no storage operation is waited for.
[[nodiscard]] Outcome hand_over(Handle& handle, const Memory& memory, const FileRange& range);
/// Waits until all bytes that ranks of this node have handed over for the file are written or have failed. Needs no other rank.
void drain_behind(FileState& file);
/// Before a write of this process through one handle: what it has handed over for the file through others is written. PnetCDF
/// writes one number of its header through two handles, and expects the later one to stay.
void drain_other_handles(Handle& handle);
/// The same for this rank's bytes of one handle; a failure is owed to the program.
void drain_own(Handle& handle);
/// MPI's class of a failure of this rank's bytes of which nobody knows yet.
[[nodiscard]] int take_behind_error(Handle& handle);
/// Before a file of this name, relative to a directory's descriptor or AT_FDCWD, is opened or asked about.
void drain_path(Engine& engine, int directory, const char* path);
/// Files that are not closed yet: at the end of MPI, or of the process.
void drain_everything(Engine& engine);
void retire_behind(Engine& engine);

// sizes.cpp: MPI_File_set_size and whatever could observe that it waits.
void hook_sizes(const mpi::FileCalls& below, mpi::FileCalls& hooks);

// position.cpp: where this rank's individual pointer stands, in etypes of the view. MPI error codes; no error handler is called.
[[nodiscard]] int position_of(const Handle& handle, MPI_File fh, MPI_Offset& etypes);
int set_position(Handle& handle, MPI_File fh, MPI_Offset etypes);
/// From now on the engine has the pointer, which stands where the library's does, or the library has it.
void take_pointer(Handle& handle, MPI_File fh);
void give_pointer_back(Handle& handle, MPI_File fh);
/// Held where the pointer is read and moved on, if `moves` and other threads may do so at the same time. Not over anything that waits for ranks.
using PointerLock = std::unique_lock<std::recursive_mutex>;
[[nodiscard]] PointerLock lock_pointer(Handle& handle, bool moves);
/// Around a call of the library that moves its pointer: there it stands where the handle's does, and the handle's moves along.
class LentPointer {
public:
    LentPointer(Handle& handle, MPI_File fh, bool lends);
    ~LentPointer();
    LentPointer(const LentPointer&) = delete;
    LentPointer& operator=(const LentPointer&) = delete;

private:
    Handle& handle_;
    MPI_File fh_;
    PointerLock guard_;
    bool lends_;
};
void hook_positions(const mpi::FileCalls& below, mpi::FileCalls& hooks);
/// Writes what waits for write-behind, then gives the file the length that a handle has said. True if there was one. Needs no other
/// rank.
bool settle_size(Engine& engine, FileState& file);
/// In a call of all ranks of a handle that is the engine's, before the library's. One of its ranks may look at the file, or write all over it,
/// before others are there. So what waits on any node is written, where the call `looks` at the file.
void meet_settled(Engine& engine, Handle& handle, bool looks);
/// The length alone.
bool settle_length(Engine& engine, FileState& file);
/// What the handle has said, if it still waits: the length, and that of the file as this rank sees it.
struct WaitingSize {
    std::int64_t said = 0, there = 0;
};
[[nodiscard]] WaitingSize waiting_size(Engine& engine, Handle& handle);
void forget_size(Handle& handle);
/// Bytes of the handle's file, as this rank sees it; -1 if it cannot be told.
[[nodiscard]] std::int64_t length_now(Engine& engine, Handle& handle);
/// An errno value.
[[nodiscard]] int grow(Engine& engine, Handle& handle, std::int64_t bytes);
/// Of a container: etypes of the view before the end of the logical file of so many bytes, a part counting as one.
[[nodiscard]] MPI_Offset container_end(const Handle& handle, std::int64_t bytes);

// verify.cpp: does the file hold what the program was told that it has written? All of it with Options::verify only.
/// Collective over the group of a handle that is the engine's; after the real close.
void verify_written(Engine& engine, Handle& handle);
/// Says of a handle that is not the engine's, that was not closed, or that other ranks do not verify, what nobody has compared. Needs no other
/// rank.
void say_unverified(Engine& engine, Handle& handle, bool was_closed);
/// Before this rank's bytes are written there by the engine: see WriteLog::prepare.
void prepare_log(Engine& engine, Handle& handle, const FileRange& range, std::int64_t bytes);
/// Before the file is cut to this length.
void prepare_log_for_cut(Engine& engine, Handle& handle, std::int64_t length);
/// A write that the MPI library carries out, by `real`, because of `reason`: its result, and a note of the bytes.
[[nodiscard]] int pass_write(Handle& handle, const Call& call, std::string_view reason, FunctionRef<int()> real);
/// A write of which the program is told that it has failed, before anybody knows which bytes it is about.
void count_failed(Handle& handle, const Call& call, std::string_view reason);

// notes.cpp: what a report must know.
void note(const Engine& engine, format::NoteCode code, const std::string& path, std::int64_t value,
          const std::string& text);
void note_end(const Engine& engine, Handle& handle);
/// What a user must see at once: on standard error, and in the report.
void complain(const Engine& engine, const std::string& path, const std::string& text);

}  // namespace ioweir::engine
