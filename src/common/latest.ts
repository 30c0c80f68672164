// Requests of which only the newest matters: one is out at a time, those wanted meanwhile replace each other, and the
// newest goes out when the answer is there. A short rest before it goes out lets a drag or a wheel come to its end.

export class Latest<Question, Answer> {
  #wanted: { question: Question } | null = null;
  #out = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #disposed = false;

  constructor(
    private readonly ask: (question: Question) => Promise<Answer>,
    private readonly take: (answer: Answer, question: Question) => void,
    private readonly fail: (error: Error, question: Question) => void,
  ) {}

  /** Whether something is out or waiting. */
  get busy(): boolean {
    return this.#out || this.#wanted !== null;
  }

  want(question: Question, restMs = 0): void {
    if (this.#disposed) return;
    this.#wanted = { question };
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (restMs > 0) {
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        this.#next();
      }, restMs);
    } else {
      this.#next();
    }
  }

  dispose(): void {
    this.#disposed = true;
    this.#wanted = null;
    clearTimeout(this.#timer);
  }

  #next(): void {
    if (this.#out || this.#timer !== undefined || this.#wanted === null) return;
    const { question } = this.#wanted;
    this.#wanted = null;
    this.#out = true;
    const settle = (settled: () => void) => {
      this.#out = false;
      if (this.#disposed) return;
      settled();
      this.#next();
    };
    this.ask(question).then(
      (answer) => settle(() => this.take(answer, question)),
      (error: Error) => settle(() => this.fail(error, question)),
    );
  }
}
