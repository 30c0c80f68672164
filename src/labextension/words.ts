// The translator's bundle of this extension, or English as it stands where there is no translator.
import { type ITranslator, nullTranslator, type TranslationBundle } from "@jupyterlab/translation";

export const DOMAIN = "nnsight_lab";

export function wordsOf(translator: ITranslator | null): TranslationBundle {
  return (translator ?? nullTranslator).load(DOMAIN);
}
