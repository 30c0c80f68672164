"""Sizes of the zoo's models, as data: `shrinking.py` says how they are applied."""

from typing import Any

VOCABULARY = 128
HEAD_SIZE = 8

# (pattern of the whole field name, largest value). The first match decides; a field without a match keeps its value.
SIZE_RULES: tuple[tuple[str, int], ...] = (
    (r"num_feat_extract_layers", 99),
    (r"upsample_groups|condition_dim|latent_dim|lru_width|d_latents|quantization_dim|codevector_dim|proj_codevector_dim", 32),
    (r"mamba_d_head|mamba_headdim", 16),
    (r"mamba_d_ssm", 64),
    (r"mamba_dt_rank|time_step_rank", 4),
    (r"(mamba_)?n_?groups", 2),
    (r"attention_window_size", 4),
    (r"num_expert_group", 2),
    (r"intra_bottleneck_size|true_hidden_size|hidden_size_global|emb_dim|hidden_size_per_layer_input", 32),
    (r"output_channels|fpn_hidden_size|fusion_hidden_size|bottleneck_features|codebook_dim|vector_quantization_hidden_dimension", 32),
    (r"num_pos_feats", 16),
    (r"num_latents|num_queries|num_denoising", 8),
    (r"(encoder|decoder)_num_(hidden_)?layers|num_self_attends_per_block", 2),
    (r"encoder_hash_byte_group_vocab|ngram_vocab_size_base", 64),
    (r"num_filters", 8),
    (r"vocab_size|\w+_vocab_size|unpadded_vocab_size|vocab_size_per_layer_input", VOCABULARY),
    (r"vocab_offset", 0),
    (r"(.*_)?max_position_embeddings|n_positions|n_ctx|max_seq_len|max_target_positions|max_source_positions", 128),
    (r"sliding_window|attention_chunk_size|sliding_window_size", 4),
    (r"(moe|expert|shared_expert|shared|share_expert|routed)\w*_(intermediate|hidden|ffn)?_?(size|dim)", 32),
    (r"(.*_)?intermediate_size(_mlp)?|(.*_)?ffn_dim|ffn_hidden_size|mlp_dim|d_ff|d_inner|dff|dim_ff|dim_feedforward|n_inner", 64),
    (r"q_lora_rank|kv_lora_rank|o_lora_rank", 16),
    (r"qk_nope_head_dim|qk_rope_head_dim|v_head_dim|index_head_dim|rotary_dim", 8),
    (r"qk_head_dim", 16),
    (r"(.*_)?head_dim|d_head|d_kv|attention_head_dim|kv_channels|dim_head", 8),
    (r"linear_(key|value)_head_dim|mamba_d_head|mamba_head_dim", 8),
    (r"(.*_)?num_key_value_heads|num_kv_heads|kv_n_heads", 2),
    (r"(.*_)?attention_heads|(.*_)?num_heads|n_heads?|index_n_heads|(.*_)?num_attention_heads", 4),
    (r"linear_num_key_heads|linear_num_value_heads|(.*_)?mamba_num_heads|mamba_n_heads|n_mamba_heads", 4),
    (r"(.*_)?(hidden_layers|num_layers|layers|n_layers?|depth)", 2),
    (r"num_(local_)?experts|n_routed_experts|moe_num_experts|num_routed_experts", 4),
    (r"num_experts_per_tok(en)?|moe_topk|moe_top_k|moe_k|top_k|topk_group|n_group", 2),
    (r"first_k_dense_replace|n_shared_experts", 1),
    (r"(.*_)?hidden_size|d_model|n_embd|(.*_)?embed_dim|(.*_)?hidden_dim|embedding_size|projection_dim|text_hidden_size", 32),
    (r"(.*_)?state_size|mamba_d_state|mamba_d_ssm", 8),
    (r"image_size|img_size", 64),
)  # fmt: skip

# Fields that some configurations leave unset and their models then need.
SIZES_OF_UNSET_FIELDS: dict[str, int] = {
    "head_dim": 8,
    "num_key_value_heads": 2,
    "num_experts_per_tok": 2,
    "n_routed_experts": 4,
}

# Fields that count the layers which per-layer lists describe.
LAYER_COUNT_FIELDS: tuple[str, ...] = ("num_hidden_layers", "n_layer", "num_layers")

# Lists with one entry per stage, cut to the default's length.
LIST_SIZES: dict[str, tuple[Any, ...]] = {
    "depths": (1, 1, 2, 1, 1, 1, 1, 1),
    "num_heads": (1, 2, 4, 8, 8, 8),
    "image_size": (64, 64),
    "embed_dim_per_stage": (32, 64, 128, 256),
    "backbone_channel_list": (256, 128, 64, 32),
    "backbone_feature_sizes": ([16, 16], [8, 8], [4, 4]),
    "decoder_in_channels": (32, 32, 32, 32),
}
