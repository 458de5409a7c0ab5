// The end of definitions: the library ends those of the logical file, and master and subfiles are defined from what it then says (Son et
// al. 2016, Algorithm 2: when all dimensions of arrays are known, and before data are written).
#include <array>
#include <cerrno>
#include <cstring>
#include <set>

#include "adapters/pnetcdf/early.hpp"
#include "adapters/pnetcdf/file.hpp"
#include "base/checksum.hpp"
#include "base/random_hex.hpp"
#include "ncsub/access.hpp"
#include "ncsub/files.hpp"

namespace ioweir::pnetcdf {
namespace {

using ncsub::Attribute;
using ncsub::Header;

/// Stops at the first error.
class Steps {
public:
    template <typename Step>
    Steps& operator()(Step&& step) {
        if (error_ == no_error) error_ = step();
        return *this;
    }
    [[nodiscard]] int error() const { return error_; }
    [[nodiscard]] bool ok() const { return error_ == no_error; }

private:
    int error_ = no_error;
};

/// The dimension that the program asks for: by an attribute of the paper's name or PnetCDF's, else for all.
std::optional<int> asked_dimension(const File& file, const Header& header, int variable) {
    for (const char* name : {"par_dim_id", "_PnetCDF_SubFiling.par_dim_id"}) {
        int type = 0, value = 0;
        Offset length = 0;
        if (file.library->inq_att(file.ncid, variable, name, &type, &length) == no_error && length == 1 &&
            type != type_text && file.library->get_att_int(file.ncid, variable, name, &value) == no_error)
            return value;
    }
    for (std::size_t i = 0; i < header.dimensions.size() && !file.options.par_dim.empty(); ++i)
        if (header.dimensions[i].name == file.options.par_dim) return static_cast<int>(i);
    return file.options.par_dim_id;
}

/// How variables from the `first` on are divided. Those before stay as they are.
void divide(File& file, ncsub::Logical& logical, std::size_t first) {
    const Header& header = logical.header;
    bool any = logical.subfiles > 0;
    std::string whole;
    for (std::size_t v = first; v < header.variables.size(); ++v) {
        const ncsub::Variable& variable = header.variables[v];
        ncsub::Shape shape;
        shape.record = header.is_record(variable);
        for (const std::int64_t id : variable.dimensions) {
            shape.lengths.push_back(header.dimensions[static_cast<std::size_t>(id)].length);
            shape.dimension_ids.push_back(static_cast<int>(id));
        }
        ncsub::DimensionOptions options{file.options.subfiles, file.options.min_ndims, std::nullopt};
        options.par_dim_id = asked_dimension(file, header, static_cast<int>(v));
        const ncsub::Choice choice = ncsub::choose_dimension(shape, options);
        std::optional<ncsub::Division> division;
        if (choice.dimension >= 0) {
            const std::int64_t length = shape.lengths[static_cast<std::size_t>(choice.dimension)];
            division = ncsub::Division{choice.dimension, variable.dimensions,
                                       ncsub::boundaries_of(length, file.options.subfiles)};
            any = true;
        }
        if (!choice.why.empty() && !variable.dimensions.empty())
            note(file, "variable " + variable.name + (division ? ": " : " lies in the master: ") + choice.why);
        logical.divisions.push_back(std::move(division));
    }
    if (any) logical.subfiles = file.options.subfiles;
}

/// Have all ranks defined the same? Without PNETCDF_SAFE_MODE the library does not look, and takes what rank 0 has
/// defined. Collective.
bool is_same_on_all(const File& file, const ncsub::Logical& logical) {
    std::string said = ncsub::encode(logical.header);
    for (const auto& division : logical.divisions) {
        said += division ? " along " + std::to_string(division->dimension) : " whole";
        for (const std::int64_t boundary : division ? division->boundaries : std::vector<std::int64_t>{})
            said += " " + std::to_string(boundary);
    }
    const auto mine = static_cast<std::int64_t>(checksum(said.data(), said.size()));
    std::int64_t of_first = mine;
    PMPI_Bcast(&of_first, 1, MPI_INT64_T, 0, file.comm);
    return agree(file, mine == of_first ? no_error : error_file) == no_error;
}

/// How new variables are divided, the same on all ranks: not at all, where these have defined different things.
/// Collective.
void divide_on_all(File& file, ncsub::Logical& logical) {
    const std::size_t first = file.logical.divisions.size();
    divide(file, logical, first);
    if (!is_same_on_all(file, logical)) {
        for (std::size_t v = first; v < logical.divisions.size(); ++v) logical.divisions[v].reset();
        logical.subfiles = file.logical.subfiles;
        complain(
            file,
            "ranks have defined different things, and new arrays are not divided over subfiles; PNETCDF_SAFE_MODE=1 "
            "says where");
    } else if (logical.subfiles == 0) {
        complain(file, "none of its arrays can be divided over subfiles; it is written as one file");
    }
}

int put(const Library& library, int ncid, int variable, const Attribute& attribute) {
    if (attribute.type == ncsub::Type::text)
        return library.put_att_text(ncid, variable, attribute.name.c_str(), attribute.count, attribute.bytes.data());
    std::vector<int> values;
    for (const std::int64_t value : ncsub::integers_of(attribute)) values.push_back(static_cast<int>(value));
    return library.put_att_int(ncid, variable, attribute.name.c_str(), type_int, std::ssize(values), values.data());
}

int put_division(const Library& library, int ncid, int variable, const std::vector<Attribute>& attributes) {
    Steps step;
    for (const Attribute& attribute : attributes)
        if (ncsub::says_division(attribute.name)) step([&] { return put(library, ncid, variable, attribute); });
    return step.error();
}

/// Dimensions of subfiles have names that are put together, and another one may be called so: `x.v` of a variable that is called otherwise now, `d0.v1`
/// of the first dimension of the second variable, or of a dimension d0 of a variable v1.
int define_dimension(const Library& library, int ncid, const ncsub::Dimension& dimension) {
    int id = 0, code = error_name_in_use;
    for (std::string name = dimension.name; code == error_name_in_use; name += '_')
        code = library.def_dim(ncid, name.c_str(), dimension.length, &id);
    return code;
}

/// Defines in `ncid` what `wanted` has and `had` has not, in the order of the ids. `made(v)` for each new variable.
template <typename Made>
int define(const Library& library, int ncid, const Header& wanted, std::size_t dimensions, std::size_t variables,
           Made&& made) {
    Steps step;
    int id = 0;
    for (std::size_t i = dimensions; i < wanted.dimensions.size(); ++i)
        step([&] { return define_dimension(library, ncid, wanted.dimensions[i]); });
    for (std::size_t i = variables; i < wanted.variables.size(); ++i) {
        const ncsub::Variable& variable = wanted.variables[i];
        const std::vector<int> ids(variable.dimensions.begin(), variable.dimensions.end());
        step([&] {
            return library.def_var(ncid, variable.name.c_str(), static_cast<int>(variable.type),
                                   static_cast<int>(ids.size()), ids.data(), &id);
        });
        step([&] { return made(static_cast<int>(i)); });
    }
    return step.error();
}

/// What the program has renamed since.
int rename(const File& file, const Header& now) {
    const Library& library = *file.library;
    const Header& before = file.logical.header;
    Steps step;
    for (std::size_t i = 0; i < before.dimensions.size(); ++i)
        if (before.dimensions[i].name != now.dimensions[i].name)
            step([&] { return library.rename_dim(file.master, static_cast<int>(i), now.dimensions[i].name.c_str()); });
    for (std::size_t i = 0; i < before.variables.size(); ++i) {
        const std::string& name = now.variables[i].name;
        if (before.variables[i].name == name) continue;
        step([&] { return library.rename_var(file.master, static_cast<int>(i), name.c_str()); });
        for (const Subfile& subfile : file.subfiles)
            if (file.in_subfile[i] >= 0)
                step([&] { return library.rename_var(subfile.ncid, file.in_subfile[i], name.c_str()); });
    }
    return step.error();
}

/// Where nobody or somebody else has said how the file is divided, all is said, else only of new variables.
int define_master(File& file, const ncsub::Logical& logical) {
    const Library& library = *file.library;
    const Header master = ncsub::master_of(logical);
    const Header& before = file.logical.header;
    Steps step;
    step([&] { return rename(file, logical.header); });
    step([&] {
        return define(library, file.master, master, before.dimensions.size(), before.variables.size(),
                      [](int) { return no_error; });
    });
    step([&] { return copy_attributes(file); });
    // Of a divided variable it has a scalar that nobody reads.
    for (std::size_t v = 0; v < logical.divisions.size(); ++v)
        if (const int id = static_cast<int>(v); logical.divisions[v])
            step([&] { return library.def_var_fill(file.master, id, 1, nullptr); });
        else
            step([&] { return define_fill(file, file.master, id, id); });
    if (logical.subfiles == 0) return step.error();
    // The places of variables change with every redefinition.
    step([&] { return put_division(library, file.master, global, master.attributes); });
    for (std::size_t v = file.logical.id.empty() ? 0 : before.variables.size(); v < master.variables.size(); ++v)
        step([&] { return put_division(library, file.master, static_cast<int>(v), master.variables[v].attributes); });
    return step.error();
}

/// Rank 0: the empty files where subfiles have places of their own, and else nothing where they are to be. 0 or an error.
int make_subfiles(const File& file, std::int64_t subfiles) {
    if (file.rank != 0) return no_error;
    const std::string master = path_now(file);
    for (std::int64_t number = 0; number < subfiles; ++number) {
        const std::string path = ncsub::without_prefix(ncsub::subfile_path(master, number));
        const int error = file.make_subfile ? file.make_subfile(number, path) : ncsub::clear_name(path);
        if (error == 0) continue;
        complain(file, "subfile " + path + " cannot be made in its place: " + std::strerror(error));
        return error == ENOSPC ? error_space : error == EACCES ? error_access : error_file;
    }
    return no_error;
}

/// Striped over one target each (Algorithm 2).
int create_subfiles(File& file, const ncsub::Logical& logical) {
    if (const int error = agree(file, make_subfiles(file, logical.subfiles)); error != no_error) return error;
    const ncsub::Groups groups(file.ranks, logical.subfiles);
    const ncsub::Part mine = groups.subfiles_of(file.rank);
    PMPI_Comm_split(file.comm, static_cast<int>(mine.begin), file.rank, &file.group);
    PMPI_Comm_set_errhandler(file.group, MPI_ERRORS_RETURN);
    MPI_Info info{};
    if (file.has_info)
        PMPI_Info_dup(file.info, &info);
    else
        PMPI_Info_create(&info);
    PMPI_Info_set(info, "striping_factor", "1");
    int error = no_error;
    const std::string master = path_now(file);
    for (std::int64_t number = mine.begin; number < mine.end(); ++number) {
        Subfile subfile{number, -1};
        const std::string path = ncsub::subfile_path(master, number);
        // Where it has no place of its own, a new one: a link that lies there meanwhile is not followed.
        const int mode = file.subfiles_have_places ? file.mode & ~mode_noclobber : file.mode | mode_noclobber;
        const int code = file.library->create(file.group, path.c_str(), mode, info, &subfile.ncid);
        if (code != no_error) {
            error = code;
            subfile.ncid = -1;
        } else if (groups.ranks_of(number).begin == file.rank) {
            // Before the first byte is in it: on a target it is closed to others, and its folder may have an ACL.
            (void)ncsub::begin_subfile(master, path);
        }
        file.subfiles.push_back(subfile);
    }
    PMPI_Info_free(&info);
    return error;
}

/// A fill value that is none of its variable's type ends define mode all the same, in the library, which says so: it is `told` to the program.
int told_or_failed(int code, int& told) {
    if (code != error_type) return code;
    told = code;
    return no_error;
}

int define_subfiles(File& file, const ncsub::Logical& logical, bool exist, int& told) {
    const Library& library = *file.library;
    int error = no_error;
    for (const Subfile& subfile : file.subfiles) {
        if (subfile.ncid < 0) continue;
        const Header wanted = ncsub::subfile_of(logical, subfile.number);
        const Header there = ncsub::subfile_of(file.logical, subfile.number);
        std::vector<int> logical_ids;
        for (std::size_t v = 0; v < logical.divisions.size(); ++v)
            if (logical.divisions[v]) logical_ids.push_back(static_cast<int>(v));
        Steps step;
        if (exist) step([&] { return library.redef(subfile.ncid); });
        step([&] {
            return define(library, subfile.ncid, wanted, there.dimensions.size(), there.variables.size(), [&](int v) {
                return put_division(library, subfile.ncid, v, wanted.variables[static_cast<std::size_t>(v)].attributes);
            });
        });
        for (std::size_t v = 0; v < logical_ids.size(); ++v)
            step([&] { return define_fill(file, subfile.ncid, static_cast<int>(v), logical_ids[v]); });
        if (file.logical.id.empty())
            step([&] { return put_division(library, subfile.ncid, global, wanted.attributes); });
        step([&] { return told_or_failed(library.enddef(subfile.ncid), told); });
        if (error == no_error) error = step.error();
    }
    return error;
}

/// The call with the master for the program's file.
int same_for_master(const File& file, const Call& call) {
    std::array<Word, 8> arguments{};
    for (int i = 0; i < call.count; ++i) arguments[static_cast<std::size_t>(i)] = call.arguments[i];
    arguments[0] = static_cast<Word>(file.master);
    return static_cast<int>(call.invoke(call.real, arguments.data(), call.count));
}

/// The same on all ranks.
std::string new_id(const File& file) {
    constexpr std::size_t bytes = 16;
    std::string id = file.rank == 0 ? random_hex(bytes) : std::string(2 * bytes, ' ');
    PMPI_Bcast(id.data(), static_cast<int>(id.size()), MPI_CHAR, 0, file.comm);
    return id;
}

}  // namespace

int describe(const File& file, Header& header) {
    const Library& library = *file.library;
    int dimensions = 0, variables = 0, attributes = 0, unlimited = -1;
    Steps step;
    step([&] { return library.inq_format(file.ncid, &header.version); });
    step([&] { return library.inq(file.ncid, &dimensions, &variables, &attributes, &unlimited); });
    std::array<char, longest_name + 1> name{};
    for (int i = static_cast<int>(header.dimensions.size()); i < dimensions && step.ok(); ++i) {
        Offset length = 0;
        step([&] { return library.inq_dim(file.ncid, i, name.data(), &length); });
        header.dimensions.push_back({name.data(), i == unlimited ? 0 : length});
    }
    for (int i = static_cast<int>(header.variables.size()); i < variables && step.ok(); ++i) {
        ncsub::Variable variable;
        int type = 0, count = 0;
        step([&] { return library.inq_var(file.ncid, i, name.data(), &type, &count, nullptr, nullptr); });
        std::vector<int> ids(static_cast<std::size_t>(step.ok() ? count : 0));
        step([&] { return library.inq_var(file.ncid, i, nullptr, nullptr, nullptr, ids.data(), nullptr); });
        Offset begin = 0;
        step([&] { return library.inq_varoffset(file.ncid, i, &begin); });
        variable.name = name.data();
        variable.type = static_cast<ncsub::Type>(type);
        variable.dimensions.assign(ids.begin(), ids.end());
        variable.begin = begin;
        header.variables.push_back(std::move(variable));
    }
    return step.error();
}

int copy_attributes(const File& file) {
    const Library& library = *file.library;
    int dimensions = 0, variables = 0, attributes = 0, unlimited = 0;
    Steps step;
    step([&] { return library.inq(file.ncid, &dimensions, &variables, &attributes, &unlimited); });
    std::array<char, longest_name + 1> name{};
    for (int v = global; v < variables && step.ok(); ++v) {
        const auto names_of = [&](int ncid) {
            std::vector<std::string> names;
            int count = 0;
            if (v == global)
                step([&] { return library.inq(ncid, nullptr, nullptr, &count, nullptr); });
            else
                step([&] { return library.inq_var(ncid, v, nullptr, nullptr, nullptr, nullptr, &count); });
            for (int i = 0; i < count && step.ok(); ++i) {
                step([&] { return library.inq_attname(ncid, v, i, name.data()); });
                names.emplace_back(name.data());
            }
            return names;
        };
        const std::vector<std::string> wanted = names_of(file.ncid);
        const std::set<std::string> there(wanted.begin(), wanted.end());
        for (const std::string& old : names_of(file.master))
            if (!there.contains(old) && !ncsub::says_division(old))
                step([&] { return library.del_att(file.master, v, old.c_str()); });
        for (const std::string& one : wanted)
            step([&] { return library.copy_att(file.ncid, v, one.c_str(), file.master, v); });
    }
    return step.error();
}

int end_define(File& file, const Call& call) {
    int error = take_fills(file);
    if (error == no_error) error = static_cast<int>(call.invoke(call.real, call.arguments, call.count));
    if (error != no_error) {  // the program is told, and still defines
        (void)give_fills(file);
        return error;
    }
    int told = no_error;
    ncsub::Logical logical;
    logical.divisions = file.logical.divisions;
    logical.subfiles = file.logical.subfiles;
    logical.id = file.logical.id;
    logical.files = file.logical.files;
    const bool exist = file.divided();
    // From here on other ranks are waited for.
    error = agree(file, describe(file, logical.header));
    if (error == no_error) divide_on_all(file, logical);
    const bool divided = logical.subfiles > 0;
    if (error == no_error && divided && logical.id.empty()) logical.id = new_id(file);
    if (error == no_error) error = agree(file, define_master(file, logical));
    if (error == no_error && divided && !exist) error = create_subfiles(file, logical);
    error = agree(file, error);
    if (error == no_error && divided) error = agree(file, define_subfiles(file, logical, exist, told));
    if (error == no_error) error = agree(file, told_or_failed(same_for_master(file, call), told));
    if (error != no_error) {
        file.broken = error;
        complain(file, "its master and subfiles could not be defined");
        return error;
    }
    const std::size_t old_variables = file.logical.header.variables.size();
    file.logical = std::move(logical);
    file.in_subfile.clear();
    int next = 0;
    for (const auto& division : file.logical.divisions) file.in_subfile.push_back(division ? next++ : -1);
    file.so_far.reset();
    file.state = File::State::data;
    file.ended = true;
    find_records(file);
    if (divided && !file.says_begun) {
        // The attribute was put there with those that say how the file is divided.
        error = agree(file, begin_writing(file));
        if (error != no_error) return error;
    }
    if (divided && !exist) open_early(file);
    error = fill_old_records(file, old_variables);
    if (error == no_error) error = keep_records(file);
    return error == no_error ? agree(file, told) : error;
}

int begin_define(File& file, const Call& call) {
    // What the library moves then are the records that each file has.
    if (file.state != File::State::define && file.ended && file.writable)
        if (const int settled = settle_records(file); settled != no_error) return settled;
    int error = static_cast<int>(call.invoke(call.real, call.arguments, call.count));
    if (error != no_error) return error;
    error = same_for_master(file, call);
    if (error == no_error) error = give_fills(file);
    if (error == no_error)
        file.state = File::State::define;
    else
        file.broken = error;
    return error;
}

}  // namespace ioweir::pnetcdf
