// Guarded files: every file that ioweir did not make in this process is opened through a folder here, by the folder's descriptor, so that
// nobody who can write in that folder makes ioweir read, write or remove anything else, wait, or fill the memory.
//
// Promises:
// - Nothing outside of the folder is opened, made, changed or removed, also while somebody renames and links in it: no name is followed over
//   a symbolic link (openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, or one name at a time with O_NOFOLLOW before Linux 5.6).
// - What is opened is a regular file (or, as such, a folder): a pipe, device or socket is refused, and no open waits.
// - It belongs to somebody who may put it there (Owners, guarded_raw.hpp). A file that is written, cut or replaced has one name only.
// - No memory is reserved for more bytes than the caller allows.
// Errors say which file, what is wrong and what to do; Error::number is the errno value: ELOOP a link, ENXIO a pipe, device or socket,
// EISDIR, ENOTDIR, EPERM another's file, EMLINK a hard link, EFBIG too large.
//
// What does not live here: which files are in a folder (callers), what permissions are (file_access.hpp).
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/guarded_raw.hpp"
#include "base/result.hpp"

namespace ioweir::guarded {

/// Does a descriptor still stand for the file that had this status? A program may close every descriptor that it finds, and its next file
/// gets the number. One fstat(2).
[[nodiscard]] bool stands_for(int descriptor, const struct stat& status);

/// An open file, closed at the end.
class File {
public:
    File() = default;
    File(int descriptor, const struct stat& status, std::string path)
        : descriptor_(descriptor), status_(status), path_(std::move(path)) {}
    ~File() { close(); }
    File(File&& other) noexcept;
    File& operator=(File&& other) noexcept;

    [[nodiscard]] int descriptor() const { return descriptor_; }
    /// As it was when it was opened.
    [[nodiscard]] const struct stat& status() const { return status_; }
    [[nodiscard]] std::int64_t bytes() const { return status_.st_size; }
    /// For messages.
    [[nodiscard]] const std::string& path() const { return path_; }
    /// The caller closes it.
    [[nodiscard]] int release();
    /// An errno value.
    int close();

    /// As many of the `bytes` from `offset` on as are there.
    [[nodiscard]] Result<std::string> read_part(std::int64_t offset, std::int64_t bytes) const;
    /// All of it, from its first byte; an Error (EFBIG) where it has more than `most` bytes.
    [[nodiscard]] Result<std::string> read_all(std::int64_t most) const;
    /// All of `text` at `offset`. An errno value.
    int write_all(std::string_view text, std::int64_t offset = 0) const;

private:
    int descriptor_ = -1;
    struct stat status_{};
    std::string path_;
};

/// Names in a folder, without "." and "..".
struct Names {
    std::vector<std::string> names;
    int error = 0;  ///< an errno value
};

/// A folder by its descriptor. Names are relative to it: "data", or "group.3/data", never "..". Thread safe.
class Folder {
public:
    /// None: every call fails with EBADF.
    Folder() = default;
    ~Folder();
    Folder(Folder&& other) noexcept;
    Folder& operator=(Folder&& other) noexcept;

    /// What is at a path: its last name is no link; on the way there links are followed, as the path was named by the user, or was found
    /// in a folder that was opened here. Whose it is, is for the caller to judge (owners()).
    [[nodiscard]] static Result<Folder> open(const std::string& path);
    /// The same for what a path of the user's own leads to, be it by a link.
    [[nodiscard]] static Result<Folder> follow(const std::string& path);
    /// A folder beneath this one, with the same Owners: it must belong to one of them.
    [[nodiscard]] Result<Folder> folder(const std::string& name) const;

    [[nodiscard]] explicit operator bool() const { return descriptor_ >= 0; }
    [[nodiscard]] int descriptor() const { return descriptor_; }
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::string path_of(const std::string& name) const { return path_ + "/" + name; }
    [[nodiscard]] const Owners& owners() const { return owners_; }
    /// Judges files beneath it by these, where a folder holds files of somebody else's on purpose (a storage target).
    void believe(const Owners& owners) { owners_ = owners; }
    /// What is made in it, or in folders beneath it that are opened from now on, may be used by those who may use `model` (which may be this
    /// one), as it is at that moment, whatever the umask says: file_access.hpp. `model` must outlive it.
    void pass_on(const Folder& model) { model_ = model.descriptor_; }
    /// It stays open for longer than a call: the program may close its descriptor meanwhile. One fstat(2) more at its end.
    void keep() { kept_ = true; }
    /// As it was when it was opened.
    [[nodiscard]] const struct stat& status() const { return status_; }
    [[nodiscard]] bool is_intact() const { return stands_for(descriptor_, status_); }

    /// A file that is there. `flags`: O_RDONLY, O_WRONLY or O_RDWR, and O_TRUNC, which happens after the file was judged. With O_CREAT it may
    /// be new, with O_EXCL it must be; `mode` is of such a one, unless pass_on() says.
    [[nodiscard]] Result<File> file(const std::string& name, int flags = O_RDONLY, mode_t mode = 0666) const;
    /// One that processes lock to write by turns, to read and write, made where it is not there; by pass_on() for those alone who may write.
    [[nodiscard]] Result<File> file_of_lock(const std::string& name) const;
    /// The bytes of a file; an Error (EFBIG) where it has more than `most`.
    [[nodiscard]] Result<std::string> read(const std::string& name, std::int64_t most) const;
    /// A new file with this text. An errno value; none is left after an error, and one that was there stays (EEXIST).
    int write_new(const std::string& name, std::string_view text, mode_t mode = 0666) const;
    /// The same in the place of one that is there or not: in one step, by way of a file `draft` beside it. `durable`: with fsync(2) before.
    int replace(const std::string& name, const std::string& draft, std::string_view text, mode_t mode = 0666,
                bool durable = false) const;

    // Errno values.
    int make_folder(const std::string& name, mode_t mode = 0777) const;
    /// Never a folder; of a link the link.
    int remove(const std::string& name) const;
    /// An empty one.
    int remove_folder(const std::string& name) const;
    int rename(const std::string& from, const std::string& to) const;
    /// Of the name itself, a link's own. One call, which opens nothing; links on the way are followed.
    int status_of(const std::string& name, struct stat& status) const;
    /// What a symbolic link says; empty: it is none.
    [[nodiscard]] std::string link_at(const std::string& name) const;
    /// Makes one that says `text`.
    int make_link(const std::string& name, const std::string& text) const;
    /// As rename() to another folder.
    int move(const std::string& from, const Folder& to, const std::string& name) const;
    /// Its names are on the disk. 0, too, where the file system cannot do that.
    int make_durable() const;

    [[nodiscard]] Names names() const;

private:
    Folder(int descriptor, const struct stat& status, const Owners& owners, std::string path)
        : descriptor_(descriptor), status_(status), owners_(owners), path_(std::move(path)) {}
    void close();
    [[nodiscard]] static Result<Folder> open_at(const std::string& path, int flags);
    [[nodiscard]] Result<File> open_file(const std::string& name, int flags, mode_t mode) const;
    [[nodiscard]] Result<File> open_or_make(const std::string& name, int flags, bool is_lock) const;
    /// Calls `work` with the descriptor of the folder in which the last name of `name` is, and that name. An errno value.
    template <typename Work>
    int in_parent(const std::string& name, Work&& work) const;

    int descriptor_ = -1;
    struct stat status_{};
    Owners owners_;
    std::string path_;
    int model_ = -1;  ///< of pass_on(); -1: none
    bool kept_ = false;
};

/// A file by its path, where a text says that it lies, as Folder::file(): its last name is no link, and it belongs to one of `owners`. To be
/// removed it has to be opened by its folder.
[[nodiscard]] Result<File> open_path(const std::string& path, const Owners& owners, int flags = O_RDONLY);

/// A file that the user has named, whoever it belongs to, by O_PATH: to ask who may use it and to change that. Its last name is no link.
[[nodiscard]] Result<File> find_path(const std::string& path);

/// Of the last name itself, a link's own; nothing is opened. An errno value.
[[nodiscard]] int status_of_path(const std::string& path, struct stat& status);

/// Why a file was not opened, or not used: `number` is an errno value, `fault` what was found.
[[nodiscard]] Error cannot_use(const std::string& path, int number, Fault fault = Fault::none,
                               const struct stat* status = nullptr, const Owners* owners = nullptr);

/// "dir/file" -> "dir", "file" -> ".", "/file" -> "/".
[[nodiscard]] std::string folder_name_of(const std::string& path);
/// The last name.
[[nodiscard]] std::string file_name_of(const std::string& path);

}  // namespace ioweir::guarded
