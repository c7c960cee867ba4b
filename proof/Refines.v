(** * One root without partitions is Featherweight PINQ

    The general rules, on one root and without the actions that the paper does
    not have, make exactly the paper's traces, each with the paper's
    probability.  Scaling factors are vectors with one entry, the budget that
    remains is the budget less the counter. *)

Require Import Reals Lra Lia List Arith ZArith.
Require Import Fpinq.Probability Fpinq.System Fpinq.Sources Fpinq.Scale.
Require Fpinq.Featherweight Fpinq.General.
Module F := Fpinq.Featherweight.
Module G := Fpinq.General.
Import ListNotations.
Open Scope R_scope.

Section Refines.
  Variable S : System.
  Variables (client : F.Client S) (empty : table S) (budget : R).

  (** ** The same words *)

  Definition action (a : F.Action S) : G.Action S :=
    match a with
    | F.Silent _ => G.Silent S
    | F.Assign _ t f ts => G.Assign S t f ts
    | F.Query _ t f Qs e => G.Query S t f Qs e
    | F.AskScale _ t => G.AskScale S t
    | F.AskBudget _ => G.AskBudget S
    end.

  Definition word (o : F.Observation S) : G.Observation S :=
    match o with
    | F.Tau _ => G.Tau S
    | F.Answers _ vs => G.Answers S vs
    | F.Bottom _ => G.Bottom S
    | F.Scale _ s => G.Scale S (INR s)
    | F.Budget _ b => G.Budget S [b]
    | F.Refused _ => G.Refused S
    end.

  Definition heard (o : G.Observation S) : F.Observation S :=
    match o with
    | G.Tau _ => F.Tau S
    | G.Answers _ vs => F.Answers S vs
    | G.Bottom _ => F.Bottom S
    | G.Scale _ s => F.Scale S (Z.to_nat (Int_part s))
    | G.Budget _ bs => F.Budget S (hd 0 bs)
    | G.Price _ _ | G.Refused _ => F.Refused S
    end.

  Lemma heard_word o : heard (word o) = o.
  Proof. destruct o; simpl; auto. rewrite Int_part_INR, Nat2Z.id. reflexivity. Qed.

  Lemma certain_word o o' : certain (G.observation_dec S) (word o) (word o') = certain (F.observation_dec S) o o'.
  Proof.
    unfold certain. destruct (G.observation_dec S (word o) (word o')) as [E|E], (F.observation_dec S o o') as [E'|E'];
      auto; try congruence. exfalso. apply E'. rewrite <- (heard_word o), E. apply heard_word.
  Qed.

  (** The paper's program, speaking to the general system. *)
  Definition general : G.Client S :=
    {| G.program := F.program S client;
       G.does := fun p => action (F.does S client p);
       G.told := fun p o => F.told S client p (heard o) |}.

  Notation limit := (fun _ : nat => budget).
  Notation reply := (G.reply S 1 limit general).
  Notation next := (G.next S 1 limit general).

  (** ** The same states *)

  Record related (c : F.configuration S client) (s : G.State S) : Prop := {
    same_tables : forall t, G.table_of S s t = fst (F.E S client c t);
    same_factors : forall t, G.sensitivity_of S s t 0%nat = INR (snd (F.E S client c t));
    one_source : sources (G.accounts S s) = 1%nat;
    no_partitions : partitions (G.accounts S s) = [];
    same_budget : counters (G.accounts S s) 0%nat = budget - F.B S client c }.

  Lemma init_related start D : related (F.init S client empty start (D 0%nat) budget) (G.init S 1 empty D).
  Proof.
    split; simpl; auto; try lra; intros t; unfold G.table_of, G.sensitivity_of; simpl;
      destruct t as [|t]; simpl; auto; unfold unit; simpl; lra.
  Qed.

  Lemma combine_scale cs : forall vs ss, Forall2 (fun v s => v 0%nat = INR s) vs ss ->
    match combine 1 cs vs, scale cs ss with Some v, Some s => v 0%nat = INR s | None, None => True | _, _ => False end.
  Proof.
    induction cs as [|c cs IH]; intros vs ss H; destruct H as [|v s vs ss Hv H]; simpl; auto.
    specialize (IH vs ss H). destruct (combine 1 cs vs) as [w|], (scale cs ss) as [n|]; try contradiction.
    - destruct c as [c|]; simpl.
      + rewrite IH, Hv, plus_INR, mult_INR. ring.
      + rewrite Hv. destruct (Req_EM_T (INR s) 0) as [E|E], (Nat.eqb_spec s 0) as [E'|E']; simpl; auto.
        * apply E'. apply INR_eq. exact E.
        * apply E. rewrite E'. reflexivity.
    - destruct (times c s); exact I.
  Qed.

  Lemma arguments_related c s ts : related c s ->
    Forall2 (fun v n => v 0%nat = INR n) (map (G.sensitivity_of S s) ts) (map (fun t => snd (F.E S client c t)) ts) /\
    map (G.table_of S s) ts = F.tables S (F.E S client c) ts.
  Proof.
    intros H. split; [|apply map_ext; apply (same_tables _ _ H)].
    induction ts; simpl; constructor; auto. apply (same_factors _ _ H).
  Qed.

  Lemma charged_related c s t e : related c s -> counters (charge (G.accounts S s) (G.sensitivity_of S s t) e) 0%nat =
    budget - (F.B S client c - INR (snd (F.E S client c t)) * e).
  Proof.
    intros H. unfold charge. rewrite (no_partitions _ _ H). simpl. rewrite (same_budget _ _ H), (same_factors _ _ H). ring.
  Qed.

  (** ** The same steps *)

  Lemma same_chances c s o : related c s ->
    G.chances S (reply (F.P S client c) s) (word o) = F.chances S client c o.
  Proof.
    intros H. unfold G.reply, F.chances. cbn [G.does general]. destruct (F.does S client (F.P S client c)) as [|t f ts|t f Qs e|t|];
      cbn [action G.step].
    - exact (certain_word (F.Tau S) o).
    - unfold G.assign, F.scaling_factor. rewrite (one_source _ _ H).
      destruct (arguments_related c s ts H) as [HF _]. pose proof (combine_scale (stability S f) _ _ HF) as K.
      destruct (combine _ _ _), (scale _ _); try contradiction; [exact (certain_word (F.Tau S) o)|
        exact (certain_word (F.Refused S) o)].
    - destruct (Rlt_dec 0 e); [|exact (certain_word (F.Refused S) o)]. unfold fits.
      rewrite (charged_related c s t e H).
      destruct (Rle_dec _ budget), (Rle_dec _ (F.B S client c)); try lra; [|exact (certain_word (F.Bottom S) o)].
      cbn [G.query fst G.chances]. rewrite (same_tables _ _ H). destruct o; reflexivity.
    - unfold G.ask_scale. cbn [fst G.chances]. rewrite (factor_flat 1 _ _ (no_partitions _ _ H)).
      cbn [largest Nat.add]. rewrite (same_factors _ _ H), Rmax_left by apply pos_INR.
      exact (certain_word (F.Scale S _) o).
    - unfold G.ask_budget. cbn [fst G.chances map seq]. rewrite (same_budget _ _ H).
      replace (budget - (budget - F.B S client c)) with (F.B S client c) by ring.
      exact (certain_word (F.Budget S _) o).
  Qed.

  Lemma same_after c s o : related c s -> related (F.after S client c o) (next (F.P S client c) s) /\
    F.P S client (F.after S client c o) = F.told S client (F.P S client c) o.
  Proof.
    intros H. unfold G.next, F.after. cbn [G.does general].
    assert (K : forall p, related (F.Configuration S client p (F.E S client c) (F.B S client c)) s).
    { intros p. destruct H. split; assumption. }
    destruct (F.does S client (F.P S client c)) as [|t f ts|t f Qs e|t|]; cbn [action G.step]; try (split; [apply K|reflexivity]).
    - unfold G.assign, F.scaling_factor. rewrite (one_source _ _ H).
      destruct (arguments_related c s ts H) as [HF HT]. pose proof (combine_scale (stability S f) _ _ HF) as HC.
      destruct (combine _ _ _) as [v|], (scale _ _) as [n|]; try contradiction; (split; [|reflexivity]); [|apply K].
      destruct H. split; simpl; auto; intros y; unfold G.table_of, G.sensitivity_of; simpl; unfold G.bind, F.bind;
        destruct (Nat.eqb y t); simpl; auto; [f_equal; exact HT|apply same_tables0|apply same_factors0].
    - destruct (Rlt_dec 0 e); [|split; [apply K|reflexivity]]. unfold fits. rewrite (charged_related c s t e H).
      destruct (Rle_dec _ budget), (Rle_dec _ (F.B S client c)); try lra; (split; [|reflexivity]); [|apply K].
      pose proof (charged_related c s t e H) as HB. unfold charge in *. rewrite (no_partitions _ _ H) in *.
      destruct H. split; simpl; auto.
  Qed.

  (** ** The same traces *)

  Theorem same_probability n : forall c s t, related c s ->
    G.probability S 1 limit general n (F.P S client c) s (map word t) = F.probability S client n c t.
  Proof.
    induction n as [|n IH]; intros c s [|o t] H; cbn [map G.probability F.probability]; auto.
    rewrite (same_chances c s o H). destruct (same_after c s o H) as [K E]. f_equal.
    cbn [G.told general]. rewrite heard_word, <- E. apply IH, K.
  Qed.

  (** There are no others. *)
  Lemma only_words c s o : related c s -> G.chances S (reply (F.P S client c) s) o <> 0 -> o = word (heard o).
  Proof.
    intros H. assert (shown : forall w, certain (G.observation_dec S) (word w) o <> 0 -> o = word (heard o)).
    { intros w. unfold certain. destruct (G.observation_dec S (word w) o) as [<-|]; [|lra]. rewrite heard_word. auto. }
    unfold G.reply. cbn [G.does general]. destruct (F.does S client (F.P S client c)) as [|t f ts|t f Qs e|t|];
      cbn [action G.step].
    - apply (shown (F.Tau S)).
    - unfold G.assign. destruct (combine _ _ _); [apply (shown (F.Tau S))|apply (shown (F.Refused S))].
    - destruct (Rlt_dec 0 e); [|apply (shown (F.Refused S))]. destruct (fits _ _ _); [|apply (shown (F.Bottom S))].
      destruct o; simpl; tauto.
    - unfold G.ask_scale. cbn [fst G.chances]. rewrite (factor_flat 1 _ _ (no_partitions _ _ H)). cbn [largest Nat.add].
      rewrite (same_factors _ _ H), Rmax_left by apply pos_INR. apply (shown (F.Scale S _)).
    - apply (shown (F.Budget S _)).
  Qed.

  Theorem only_the_papers_traces n : forall c s t, related c s ->
    G.probability S 1 limit general n (F.P S client c) s t <> 0 -> t = map word (map heard t).
  Proof.
    induction n as [|n IH]; intros c s [|o t] H K; cbn [G.probability map] in *; auto; try tauto.
    assert (K1 : G.chances S (reply (F.P S client c) s) o <> 0) by (intros Z; apply K; rewrite Z; ring).
    assert (K2 : G.probability S 1 limit general n (G.told S general (F.P S client c) o) (next (F.P S client c) s) t <> 0)
      by (intros Z; apply K; rewrite Z; ring).
    pose proof (only_words c s o H K1) as E. rewrite <- E. f_equal.
    destruct (same_after c s (heard o) H) as [K3 K4]. apply (IH _ _ t K3). rewrite K4. exact K2.
  Qed.

  (** ** From the start *)

  Theorem refines start D n t :
    G.probability S 1 limit general n start (G.init S 1 empty D) (map word t) =
    F.probability S client n (F.init S client empty start (D 0%nat) budget) t.
  Proof. exact (same_probability n _ _ t (init_related start D)). Qed.

  (** So the general theorem gives the paper's once more. *)
  Corollary featherweight_again start T T' n t : 0 <= budget -> (distance S T T' <= 1)%nat ->
    F.probability S client n (F.init S client empty start T budget) t <=
    F.probability S client n (F.init S client empty start T' budget) t * exp budget.
  Proof.
    intros Hb Hd. pose proof (refines start (fun _ => T) n t) as E. pose proof (refines start (fun _ => T') n t) as E'.
    cbv beta in E, E'. rewrite <- E, <- E'. eapply Rle_trans; [apply (G.joint_dp S 1 limit general (mass_private S) empty)|].
    - auto.
    - apply Rmult_le_compat_l; [apply G.probability_nonneg|]. apply exp_mono. unfold G.root_distances. simpl.
      apply le_INR in Hd. simpl in Hd. nra.
  Qed.
End Refines.
