// C++ streams, and C streams in every way that moves them: where each call was, by ftell and tellp.
// streams DIRECTORY iostream | random SEED
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

static std::string directory;
static unsigned long state;
static unsigned long next_number(unsigned long below) {
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    return (state >> 33) % below;
}

static void iostream() {
    std::ofstream out(directory + "/out", std::ios::binary);
    const std::string block(100'000, 'x');  // longer than the buffer: written at once
    for (int i = 0; i < 5; ++i) out.write(block.data(), static_cast<std::streamsize>(block.size()));
    out << 12345 << std::endl;
    out.close();
    std::ifstream in(directory + "/out", std::ios::binary);
    std::string back(50'000, ' ');
    in.seekg(1000);
    in.read(back.data(), static_cast<std::streamsize>(back.size()));
}

// Prints "name bytes place" of each call, with the place that ftell gives before it.
static void random_calls() {
    std::FILE* file = std::fopen((directory + "/random").c_str(), "w+");
    for (int i = 0; i < 20'000; ++i) std::fputc(i % 37 == 0 ? '\n' : i % 101 == 0 ? '\0' : 'a' + i % 26, file);
    std::fflush(file);
    std::rewind(file);
    std::puts("start 0 0");
    char text[8192];
    for (int step = 0; step < 4000; ++step) {
        const long before = std::ftell(file);
        const char* name = "";
        switch (next_number(9)) {
            case 0:
                std::fseek(file, static_cast<long>(next_number(19'000)), SEEK_SET);
                std::printf("fseek 0 %ld\n", std::ftell(file));
                continue;
            case 1:
                std::fread(text, 1, 1 + next_number(6000), file);
                name = "fread";
                break;
            case 2:
                std::fread(text, 7, 1 + next_number(50), file);
                name = "fread";
                break;
            case 3:
                std::fgets(text, static_cast<int>(2 + next_number(60)), file);
                name = "fgets";
                break;
            case 4:
                std::getc(file);
                name = "fgetc";
                break;
            case 5:
                if (std::fscanf(file, "%30s", text) < 0) std::clearerr(file);
                name = "fscanf";
                break;
            case 6: {  // not seen: it works on the buffer
                const unsigned long count = next_number(5000);
                for (unsigned long i = 0; i < count; ++i) getc_unlocked(file);
                continue;
            }
            default: {  // between reading and writing the standard asks for a seek
                std::fseek(file, static_cast<long>(next_number(19'000)), SEEK_SET);
                std::printf("fseek 0 %ld\n", std::ftell(file));
                const long place = std::ftell(file);
                const unsigned long count = 1 + next_number(400);
                std::fprintf(file, "%0*d", static_cast<int>(count), 5);
                std::printf("fprintf %ld %ld\n", std::ftell(file) - place, place);
                std::fseek(file, 0, SEEK_CUR);
                std::printf("fseek 0 %ld\n", std::ftell(file));
                continue;
            }
        }
        std::printf("%s %ld %ld\n", name, std::ftell(file) - before, before);
    }
    std::fclose(file);
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    directory = argv[1];
    state = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 1;
    if (std::string(argv[2]) == "iostream") iostream();
    if (std::string(argv[2]) == "random") random_calls();
}
