#include "adapters/hdf5/library.hpp"

#include <array>
#include <cstring>

namespace ioweir::hdf5 {
namespace {

/// A class of property lists is a variable of the library; a program that refers to it may hold it in the library's place.
Id* find_class(const Library& library, const Finder& find, const char* name, const char* class_name) {
    for (void* found : {find.object != nullptr ? find.object(name) : nullptr, find.function(find.beside, name)}) {
        auto* id = static_cast<Id*>(found);
        if (id == nullptr || *id <= 0) continue;
        char* text = library.H5Pget_class_name(*id);
        const bool right = text != nullptr && std::strcmp(text, class_name) == 0;
        if (text != nullptr) library.H5free_memory(text);
        if (right) return id;
    }
    return nullptr;
}

/// H5Oget_info1_t begins so; the fields that are asked for are those.
struct ObjectInfo {
    unsigned long file;
    Size address;
    std::array<unsigned char, 496> others;
};

}  // namespace

const char* fill(Library& library, const Finder& find) {
#define IOWEIR_HDF5_FUNCTION(result, name, parameters) \
    library.name = reinterpret_cast<decltype(library.name)>(find.function(find.beside, #name));
#define IOWEIR_HDF5_NEEDED(result, name, parameters) \
    IOWEIR_HDF5_FUNCTION(result, name, parameters)   \
    if (library.name == nullptr) return #name;
    IOWEIR_HDF5_FUNCTIONS(IOWEIR_HDF5_NEEDED)
    IOWEIR_HDF5_MAYBE(IOWEIR_HDF5_FUNCTION)
#undef IOWEIR_HDF5_NEEDED
#undef IOWEIR_HDF5_FUNCTION
    if (library.H5open() < 0) return "H5open";
    library.H5get_libversion(&library.major, &library.minor, &library.release);
    if (library.H5is_library_threadsafe != nullptr) library.H5is_library_threadsafe(&library.thread_safe);
    const Quiet quiet(library);
    library.file_create = find_class(library, find, "H5P_CLS_FILE_CREATE_ID_g", "file create");
    library.file_access = find_class(library, find, "H5P_CLS_FILE_ACCESS_ID_g", "file access");
    library.dataset_create = find_class(library, find, "H5P_CLS_DATASET_CREATE_ID_g", "dataset create");
    library.dataset_transfer = find_class(library, find, "H5P_CLS_DATASET_XFER_ID_g", "data transfer");
    return nullptr;
}

std::optional<ObjectPlace> place_of(const Library& library, Id object) {
    constexpr unsigned basic = 1;  // H5O_INFO_BASIC
    ObjectInfo info{};
    if (library.H5Oget_info2 == nullptr || library.H5Oget_info2(object, &info, basic) < 0) return std::nullopt;
    return ObjectPlace{info.file, info.address};
}

Quiet::Quiet(const Library& library) : library_(library) {
    unsigned is_second = 1;
    if (library_.H5Eauto_is_v2 != nullptr && library_.H5Eget_auto1 != nullptr && library_.H5Eset_auto1 != nullptr)
        library_.H5Eauto_is_v2(by_default, &is_second);
    by_first_ = is_second == 0;
    if (by_first_) {
        library_.H5Eget_auto1(&function_, &data_);
        library_.H5Eset_auto1(nullptr, nullptr);
    } else {
        library_.H5Eget_auto2(by_default, &function_, &data_);
        library_.H5Eset_auto2(by_default, nullptr, nullptr);
    }
}

Quiet::~Quiet() {
    library_.H5Eclear2(by_default);
    if (by_first_)
        library_.H5Eset_auto1(function_, data_);
    else
        library_.H5Eset_auto2(by_default, function_, data_);
}

FailedCall::~FailedCall() {
    if (stack_ > 0) library_.H5Eset_current_stack(stack_);
}

List::List(const Library& library, Id programs, const Id* list_class) : library_(library) {
    const Quiet quiet(library);
    if (programs != by_default)
        id_ = library.H5Pcopy(programs);
    else if (list_class != nullptr)
        id_ = library.H5Pcreate(*list_class);
    if (id_ < 0) id_ = 0;
}

List::~List() {
    if (id_ > 0) library_.H5Pclose(id_);
}

}  // namespace ioweir::hdf5
