// Programs with signal handlers of their own: `handlers CASE`, with the library given by its path in $LIBRARY.
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>

static void* open_library() {
  void* handle = dlopen(getenv("LIBRARY"), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    fprintf(stderr, "%s\n", dlerror());
    exit(3);
  }
  return handle;
}

// The function starts on a page that it shares with kept code, where there is a trap; 4500 bytes on there is a hole.
static int call_removed(void* handle, int distance = 0) {
  auto function = reinterpret_cast<int (*)(int)>((char*)dlsym(handle, "_Z16removed_unlistedi") + distance);
  return function(1);
}

static char stack[1 << 16];

static void say(const char* text) { (void)!write(1, text, strlen(text)); }

// What Python's faulthandler does: say what it knows, put the old handler back, raise the signal again.
static struct sigaction before;
static void like_faulthandler(int signal, siginfo_t*, void*) {
  say("handler ran\n");
  sigaction(signal, &before, nullptr);
  raise(signal);
}

static void skips_the_fault(int, siginfo_t* info, void* context) {
  say(info->si_addr ? "address\n" : "null\n");
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += 2;  // mov (%rax), %al
}

static void install(int signal, void (*handler)(int, siginfo_t*, void*), int flags) {
  stack_t alternate = {};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  sigaction(signal, &action, &before);
}

static void fault() {
  long zero = 0;
  __asm__ volatile(".byte 0x8a, 0x00" : "+a"(zero));
}

int main(int, char** arguments) {
  setvbuf(stdout, nullptr, _IONBF, 0);
  std::string what = arguments[1];
  if (what == "handler first, removed code") {
    install(SIGSEGV, like_faulthandler, SA_ONSTACK | SA_NODEFER);
    call_removed(open_library(), 4500);
  } else if (what == "handler last, removed code") {
    void* handle = open_library();
    install(SIGSEGV, like_faulthandler, SA_ONSTACK | SA_NODEFER);
    call_removed(handle, 4500);
  } else if (what == "handler first, other fault") {
    install(SIGSEGV, like_faulthandler, SA_ONSTACK | SA_NODEFER);
    open_library();
    fault();
  } else if (what == "handler last, other fault") {
    open_library();
    install(SIGSEGV, like_faulthandler, SA_ONSTACK | SA_NODEFER);
    fault();
  } else if (what == "handler that goes on") {
    install(SIGSEGV, skips_the_fault, 0);
    void* handle = open_library();
    fault();
    fault();
    say("went on\n");
    call_removed(handle);
  } else if (what == "no handler, other fault") {
    open_library();
    fault();
  } else if (what == "no handler, trap") {
    open_library();
    __asm__ volatile("int3");
  } else if (what == "sent signal") {
    open_library();
    kill(getpid(), SIGSEGV);
  } else if (what == "ignored sent signal") {
    signal(SIGSEGV, SIG_IGN);
    void* handle = open_library();
    raise(SIGSEGV);
    say("went on\n");
    call_removed(handle);
  } else if (what == "thread") {
    void* handle = open_library();
    std::thread([handle] { call_removed(handle); }).join();
  } else if (what == "stack overflow") {
    open_library();
    install(SIGSEGV, like_faulthandler, SA_ONSTACK | SA_NODEFER);
    volatile char* deep = static_cast<volatile char*>(__builtin_alloca(1 << 30));
    deep[0] = 1;
  } else if (what == "closed library") {
    dlclose(open_library());
    fault();
  } else if (what == "closed and opened again") {
    dlclose(open_library());
    call_removed(open_library());
  } else if (what == "forked") {
    void* handle = open_library();
    if (fork() == 0) call_removed(handle);
    int status;
    wait(&status);
    printf("child ended with %d\n", WEXITSTATUS(status));
  } else if (what == "both libraries") {
    void* handle = open_library();
    void* second = dlopen(getenv("SECOND"), RTLD_NOW | RTLD_LOCAL);
    call_removed(atoi(arguments[2]) == 1 ? handle : second);
  }
  return 0;
}
