// Access of a divided netCDF file: its subfiles, also on storage targets, may be used by those who may use its master.
// What does not live here: what the access of a file is (base/file_access.hpp), which files those are (files.hpp).
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ioweir::ncsub {

/// Gives the subfiles, and the mark beside the master, the access that the master (by a descriptor, which may be of O_PATH) has now. Files
/// of others than `owner_before`, who the master belonged to until now, are left alone, and all where the caller is neither he nor root.
/// An errno value: something stays as it was.
int follow_master(int master, uid_t owner_before, const std::string& path, const std::vector<std::string>& subfiles);
/// The same of the file at a path, if it is a master.
int follow_master_at(const std::string& path);

/// A new subfile, of the caller's, gets the access of the master at a path. An errno value.
int begin_subfile(const std::string& path, const std::string& subfile);

}  // namespace ioweir::ncsub
