#include "kernels/runner/hdf5_library.hpp"

#include <array>
#include <string>

#include "kernels/runner/job.hpp"
#include "kernels/runner/library.hpp"

namespace ioweir::kernels::hdf5 {

const Functions& functions() {
    static const Functions all = [] {
#ifdef OPEN_MPI
        constexpr std::array names{"libhdf5_openmpi.so", "libhdf5_openmpi.so.103", "libhdf5.so"};
#else
        constexpr std::array names{"libhdf5_mpich.so", "libhdf5_mpich.so.103", "libhdf5.so"};
#endif
        void* const library = load_library(names, "parallel HDF5");
        Functions found{};
        const auto get = [&](const char* name, auto& function) { find(library, "HDF5", name, function); };
        get("H5open", found.open_library);
        get("H5Pcreate", found.create_list);
        get("H5Pclose", found.close_list);
        get("H5Pset_fapl_mpio", found.set_mpio);
        get("H5Pset_dxpl_mpio", found.set_transfer);
        get("H5Pset_alignment", found.set_alignment);
        get("H5Pset_meta_block_size", found.set_meta_block);
        get("H5Pset_coll_metadata_write", found.set_collective_metadata_writes);
        get("H5Pset_all_coll_metadata_ops", found.set_collective_metadata_reads);
        get("H5Pget_mdc_config", found.get_cache);
        get("H5Pset_mdc_config", found.set_cache);
        get("H5Pset_libver_bounds", found.set_versions);
        get("H5Pset_istore_k", found.set_index_k);
        get("H5Pset_chunk", found.set_chunk);
        get("H5Pset_fill_time", found.set_fill_time);
        get("H5Pset_create_intermediate_group", found.set_intermediate_groups);
        get("H5Fcreate", found.create_file);
        get("H5Fopen", found.open_file);
        get("H5Fflush", found.flush);
        get("H5Fclose", found.close_file);
        get("H5Screate_simple", found.create_space);
        get("H5Sselect_hyperslab", found.select_block);
        get("H5Sselect_none", found.select_none);
        get("H5Sclose", found.close_space);
        get("H5Dcreate2", found.create_dataset);
        get("H5Dopen2", found.open_dataset);
        get("H5Dwrite", found.write);
        get("H5Dread", found.read);
        get("H5Dclose", found.close_dataset);
        get("H5P_CLS_FILE_CREATE_ID_g", found.file_creation);
        get("H5P_CLS_FILE_ACCESS_ID_g", found.file_access);
        get("H5P_CLS_DATASET_CREATE_ID_g", found.dataset_creation);
        get("H5P_CLS_DATASET_XFER_ID_g", found.dataset_transfer);
        get("H5P_CLS_LINK_CREATE_ID_g", found.link_creation);
        get("H5T_NATIVE_INT32_g", found.int32);
        get("H5T_NATIVE_INT64_g", found.int64);
        get("H5T_NATIVE_FLOAT_g", found.float32);
        get("H5T_NATIVE_DOUBLE_g", found.float64);
        must(found.open_library(), "H5open");
        return found;
    }();
    return all;
}

Id type_of(ElementType type) {
    switch (type) {
        case ElementType::int32:
            return *functions().int32;
        case ElementType::int64:
            return *functions().int64;
        case ElementType::float32:
            return *functions().float32;
        case ElementType::float64:
            return *functions().float64;
    }
    return -1;
}

void must(int result, std::string_view what) {
    if (result < 0) fail(std::string(what) + " failed; HDF5's own message is above");
}

Id must_id(Id id, std::string_view what) {
    must(id < 0 ? -1 : 0, what);
    return id;
}

}  // namespace ioweir::kernels::hdf5
