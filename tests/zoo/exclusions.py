"""Classes that the zoo leaves out and classes that draw random numbers in eval mode, with the reason."""

_STREAM = "its text and audio streams have to agree in length with parts of the model that shrinking changes"
_IMAGE_TOKENS = "runs only with one placeholder token in the prompt for every patch of the image"
_ROBOT = "takes robot states and actions"
_NO_FORWARD = "has no forward: its parts are called one by one"
_ASSISTANT = "runs only on the cache or hidden states of another model"
_SESSION = "takes a video session object, not tensors"
_NOT_EXPORTED = "transformers lists the class but does not export it"
_LLAMA4 = "its forward fails without an image: it reads an output field that the text model does not set"
_CONFIG = "its default configuration is incomplete or its size constraints are not met by the shrinking rules"
_SHAPES = (
    "its input needs a shape that neither its signature nor its configuration tells, and no entry of INPUTS gives it"
)

EXCLUDED: dict[str, str] = {
    "LayoutLMv2ForQuestionAnswering": "needs detectron2",
    "DinatForImageClassification": "needs natten",
    "EomtDinov3ForUniversalSegmentation": "needs scipy",
    "EomtForUniversalSegmentation": "needs scipy",
    "InklingForConditionalGeneration": "needs scipy",
    "Mask2FormerForUniversalSegmentation": "needs scipy",
    "MaskFormerForInstanceSegmentation": "needs scipy",
    "OneFormerForUniversalSegmentation": "needs scipy",
    "VideomtForUniversalSegmentation": "needs scipy",
    "EdgeTamModel": "needs timm and pillow",
    "EdgeTamVisionModel": "needs timm and pillow",
    "FastVlmForConditionalGeneration": "needs timm and pillow",
    "Gemma3nForConditionalGeneration": "needs timm and pillow",
    "OmDetTurboForObjectDetection": "needs timm and pillow",
    "PeAudioVideoEncoder": "needs timm and pillow",
    "PeAudioVideoModel": "needs timm and pillow",
    "PeVideoEncoder": "needs timm and pillow",
    "PeVideoModel": "needs timm and pillow",
    "PerceptionLMForConditionalGeneration": "needs timm and pillow",
    "TimmBackbone": "needs timm and pillow",
    "TimmWrapperForImageClassification": "needs timm and pillow",
    "TimmWrapperModel": "needs timm and pillow",
    "HiggsAudioV2TokenizerModel": "needs torchaudio",
    "Gemma4AssistantForCausalLM": _ASSISTANT,
    "Gemma4UnifiedAssistantForCausalLM": _ASSISTANT,
    "MuseGlimmerAssistantModel": _ASSISTANT,
    "Apertus1p5ForConditionalGeneration": _CONFIG,
    "DepthProForDepthEstimation": _CONFIG,
    "DiffusionGemmaForBlockDiffusion": _CONFIG,
    "Dots3NoteForConditionalGeneration": _CONFIG,
    "Ernie4_5_VLMoeForConditionalGeneration": _CONFIG,
    "Granite4VisionForConditionalGeneration": _CONFIG,
    "PPOCRV5ServerDetForObjectDetection": _CONFIG,
    "PPOCRV6MediumDetForObjectDetection": _CONFIG,
    "PPOCRV6SmallDetForObjectDetection": _CONFIG,
    "Qwen3OmniMoeForConditionalGeneration": _CONFIG,
    "Sapiens2ForSemanticSegmentation": _CONFIG,
    "T5Gemma2Encoder": _CONFIG,
    "Blip2ForConditionalGeneration": _IMAGE_TOKENS,
    "InstructBlipForConditionalGeneration": _IMAGE_TOKENS,
    "InstructBlipVideoForConditionalGeneration": _IMAGE_TOKENS,
    "Kosmos2ForConditionalGeneration": _IMAGE_TOKENS,
    "ShieldGemma2ForImageClassification": _IMAGE_TOKENS,
    "Llama4ForConditionalGeneration": _LLAMA4,
    "VoxtralRealtimeTextModel": _NOT_EXPORTED,
    "BarkModel": _NO_FORWARD,
    "GlmImageVQVAE": _NO_FORWARD,
    "Qwen2_5OmniForConditionalGeneration": _NO_FORWARD,
    "PI0ForConditionalGeneration": _ROBOT,
    "Sam3TrackerVideoModel": _SESSION,
    "ClvpModelForConditionalGeneration": _SHAPES,
    "EfficientLoFTRForKeypointMatching": _SHAPES,
    "FlavaForPreTraining": _SHAPES,
    "Inkling2VisionModel": _SHAPES,
    "NeuCodecModel": _SHAPES,
    "PPOCRV5MobileRecForTextRecognition": _SHAPES,
    "PPOCRV6SmallRecForTextRecognition": _SHAPES,
    "PPOCRV6TinyRecForTextRecognition": _SHAPES,
    "TvpModel": _SHAPES,
    "UVDocModel": _SHAPES,
    "VibeVoiceAcousticTokenizerDecoderModel": _SHAPES,
    "Xcodec2Model": _SHAPES,
    "XcodecModel": _SHAPES,
    "KyutaiSpeechToTextForConditionalGeneration": _STREAM,
    "VoxtralRealtimeForConditionalGeneration": _STREAM,
}

# Seed before each forward of these.
STOCHASTIC: dict[str, str] = {
    "InformerModel": "its sparse attention samples keys",
    "VibeVoiceAcousticTokenizerModel": "its encoder adds noise to the latents",
    "VitsModel": "its duration predictor and its prior draw noise",
}
