// Stubs for dlopen() and its relatives, which SQLite needs to load extensions. tpsim does not load
// extensions, and a static program cannot (cmake/Static.cmake).
extern "C" {

void* tpsim_no_dlopen(const char*, int) { return nullptr; }
void* tpsim_no_dlsym(void*, const char*) { return nullptr; }
int tpsim_no_dlclose(void*) { return -1; }
const char* tpsim_no_dlerror() { return "a static program loads no extensions"; }

}  // extern "C"
