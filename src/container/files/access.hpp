// Access: the parts of a container may be used by those who may use its file, by nobody else. The header file says who that is; the container's
// directory has the same (with the right to pass where there is one to read or write), so that no name in it is reached by others, and
// what is made in it takes it from there (guarded::Folder::pass_on()). Parts on storage targets have it by themselves.
// What does not live here: what the access of a file is (base/file_access.hpp).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/guarded_files.hpp"
#include "container/files/directory.hpp"

namespace ioweir::container {

/// Gives a new directory the access of the file that is to be its header file, by a descriptor.
void begin_access(const Directory& directory, int header_file_descriptor);

/// What follow_header_file() looks at besides.
struct Following {
    std::optional<uid_t> owner_before =
        {};                  ///< of header file and directory, where the header file has just been given away
    bool all_parts = false;  ///< each of them, also where the directory is as the header file already
};
/// The header file (by a descriptor, which may be of O_PATH) may have another access than before: directory and parts get it. Does nothing where
/// header file and directory belong to different users, for a copied header file is no order to open another's bytes, or where the caller owns neither;
/// nor to parts of others than the owner, which the directory closes with the rest. Where another header file beside it names the directory, it
/// only takes away. An errno value: something stays as it was.
int follow_header_file(const Directory& directory, int header_file_descriptor, const Following& following = {});
/// The same for the container at a path, if one is there.
int follow_header_file_at(const std::string& path, const Following& following = {});

/// A new part in a folder outside of the directory gets the directory's access. An errno value: those who write or read the container with
/// other users' rights could not use it.
int begin_part(const Directory& directory, int descriptor);

}  // namespace ioweir::container
