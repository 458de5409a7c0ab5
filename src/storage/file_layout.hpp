// What a file system says about where a file's bytes lie, and telling it at creation. Read from extended attributes, without the file
// system's own libraries.
// What does not live here: which byte lies where (layout/core/stripe_layout.hpp), what is done with it (engine).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "base/function_ref.hpp"

namespace ioweir::storage {

enum class Teller : std::uint8_t { nobody, lustre, cephfs };
[[nodiscard]] const char* name_of(Teller teller);

/// The striping of one file. 0: not known.
struct FileLayout {
    std::int64_t stripe_bytes = 0;
    std::int64_t stripe_count = 0;
    Teller told_by = Teller::nobody;
    friend bool operator==(const FileLayout&, const FileLayout&) = default;
};

/// As fgetxattr(2) for one file: the value's length, or a negative errno value.
using AttributeReader = FunctionRef<std::int64_t(const char* name, void* value, std::size_t room)>;
/// As fsetxattr(2): 0, or a negative errno value.
using AttributeWriter = FunctionRef<int(const char* name, const void* value, std::size_t bytes)>;

/// Lustre: attribute `lustre.lov`, lov_user_md of version 1 or 3 (lustre_user.h), or of a composite layout the part that goes furthest
/// (progressive file layouts begin with small stripes for small files). CephFS: `ceph.file.layout.*`; with a stripe count of 1 the
/// objects are the stripes, and on how many targets they lie is not known. What cannot be understood is as if nobody told.
[[nodiscard]] FileLayout read_layout(AttributeReader read);

/// Asks for the striping of a file that has no byte yet; 0 leaves a value as it is. CephFS only: on Lustre the striping is chosen
/// when a file is created, which the MPI library does, given the hints. 0, ENOTSUP where it cannot be said, or what the file system
/// answered.
[[nodiscard]] int write_layout(const FileLayout& wanted, const FileLayout& now, AttributeWriter write);

}  // namespace ioweir::storage
